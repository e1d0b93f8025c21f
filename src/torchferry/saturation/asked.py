"""What onnxruntime answers on this processor, when it is asked for a product that 16 bits cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from torchferry.foreign import onnxruntime as ort
from torchferry.saturation.product import BLOCKS, COLUMNS, QDQ, TERMS, Product, activations, expected, weights, zero_point

ROWS = (1, 3)  # one row goes to other kernels than several


def exact(product: Product) -> bool:
    """Return whether such products are computed right here; one that onnxruntime does not take is not wrong."""
    pairs = ((expected(product, rows), answer(product, rows)) for rows in ROWS)
    return all(got is None or np.abs(got - want).max() <= 0.02 * np.abs(want).max() + 1 for want, got in pairs)


def has_kernel(product: Product) -> bool:
    """Return whether onnxruntime has such a product at all."""
    return answer(product, ROWS[0]) is not None


def answer(product: Product, rows: int) -> np.ndarray | None:
    """Return what comes out, or None where onnxruntime has no such kernel."""
    return WHO[-1](product, rows)


def features() -> tuple[str, ...]:
    """Return the instruction sets of this processor that such products may be made with, as torch names them."""
    import torch

    words = ("avx2", "avx512_f", "amx", "vnni", "neon", "dot", "i8mm", "sve")
    told = torch.cpu.get_capabilities()
    return tuple(sorted(name for name, there in told.items() if there is True and any(word in name for word in words)))


@cache
def _runtime(product: Product, rows: int) -> np.ndarray | None:
    given = activations(product, rows)
    given = given[:, :, None, None] if "Conv" in product.op else given
    try:
        found = ort.session(_model(product), threads=1).run(None, {"a": given.astype(_fed(product))})[0]
    except Exception:  # whatever onnxruntime raises about types that it has no kernel for
        return None
    return np.asarray(found).reshape(rows, COLUMNS).astype(np.float64)


WHO: list[Callable[[Product, int], np.ndarray | None]] = [_runtime]  # the last one is asked


def _fed(product: Product) -> str:
    return "float32" if product.domain == QDQ or "x" in product.roles else product.activations


@cache
def _model(product: Product) -> bytes:
    """Return a model of the one product, with constant weights."""
    import onnx

    made, node = onnx.helper, onnx.helper.make_node
    held = _constants(product)
    if product.domain == QDQ:
        nodes = [
            node("QuantizeLinear", ["a", "sa", "za"], ["aq"]),
            node("DequantizeLinear", ["aq", "sa", "za"], ["ar"]),
            node("DequantizeLinear", ["b", "sb", "zb"], ["br"]),
            node(product.op, ["ar", "br"], ["yr"]),
            node("QuantizeLinear", ["yr", "sy", "zy"], ["yq"]),
            node("DequantizeLinear", ["yq", "sy", "zy"], ["y"]),
        ]
    else:
        blocks = {"K": TERMS, "N": COLUMNS, "bits": 8, "block_size": product.block, "accuracy_level": 4} if product.block else {}
        nodes = [node(product.op, ["a" if r == "x" else r for r in product.roles], ["y"], domain=product.domain, **blocks)]
    read = {name for n in nodes for name in n.input}
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in held.items() if name in read]
    shape = ["rows", TERMS, 1, 1] if "Conv" in product.op else ["rows", TERMS]
    taken = made.make_tensor_value_info("a", made.np_dtype_to_tensor_dtype(np.dtype(_fed(product))), shape)
    graph = made.make_graph(nodes, "product", [taken], [onnx.ValueInfoProto(name="y")], stored)
    versions = [made.make_opsetid("", 17), made.make_opsetid("com.microsoft", 1)]
    return bytes(made.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString())


def _constants(product: Product) -> dict[str, np.ndarray]:
    matrix = weights(product).astype(product.weights)
    if "Conv" in product.op:
        matrix = np.ascontiguousarray(matrix.T)[:, :, None, None]
    elif (product.domain, product.op) == BLOCKS:
        matrix = np.ascontiguousarray(matrix.T).reshape(COLUMNS, -1, product.block)
    one = np.ones((COLUMNS, TERMS // product.block) if product.block else (), np.float32)
    kinds = {"za": product.activations, "zb": product.weights, "zy": product.activations}
    zeros = {name: np.array(0 if name == "za" else zero_point(kind), kind) for name, kind in kinds.items()}
    return {"b": matrix, "sa": np.ones((), np.float32), "sb": one, "sy": np.array(product.step, np.float32), **zeros}
