"""Whether products of 8-bit integers come out right on this processor, asked by products that 16 bits cannot hold.

Without VNNI (or AMX, or ARM's dot products) kernels that multiply uint8 by int8 add pairs of products in 16 bits, and cut the sum
off there: 255 * 127 twice is 64770, and comes out as 32767. Nobody says so, and which kernel does it hangs on the runtime, its
version and the processor; so each is asked, once in a process, when a file is opened that needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from torchferry import ort

HARMLESS = 64  # no pair of weights up to here leaves 16 bits: 255 * 64 twice is 32640
TERMS, COLUMNS = 128, 32  # of the product that is asked for: enough for the kernels that take many at a time
ROWS = (1, 3)  # one row goes to other kernels than several
# what stands where among an operator's inputs: activations and weights (a, b), their scales (sa, sb), their zero points (za, zb),
# the scale and zero point of what comes out (sy, zy); x are activations that the operator rounds itself
INPUTS = {
    ("", "MatMulInteger"): "a b za zb",
    ("", "ConvInteger"): "a b za zb",
    ("", "QLinearMatMul"): "a sa za b sb zb sy zy",
    ("", "QLinearConv"): "a sa za b sb zb sy zy",
    ("com.microsoft", "DynamicQuantizeMatMul"): "x b sb zb",
    ("com.microsoft", "MatMulIntegerToFloat"): "a b sa sb za zb",
    ("com.microsoft", "QGemm"): "a sa za b sb zb",
}
QDQ = "QDQ"  # the domain, so to say, of what onnxruntime fuses: DequantizeLinear on both sides of a plain product
FUSED = ("MatMul", "Gemm", "Conv")
BLOCKS = ("com.microsoft", "MatMulNBits")


@dataclass(frozen=True, slots=True)
class Product:
    """A kind of product: the operator, and the element types of its activations and weights ("uint8", "int8")."""

    domain: str
    op: str
    activations: str
    weights: str
    block: int = 0  # of MatMulNBits: how many weights share a scale

    def __str__(self) -> str:
        around = " between DequantizeLinear nodes" if self.domain == QDQ else ""
        return f"{self.op} of {self.activations} by {self.weights}{around}"

    def flipped(self) -> Product:
        """Return the same product with weights of the other sign: 128 away, and so is their zero point."""
        return replace(self, weights="uint8" if self.weights == "int8" else "int8")


def pairs_cut_off(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two matrices of integers as it is computed in pairs whose sum is cut off at 16 bits."""
    odd = a.shape[-1] % 2  # the last product of an odd number is alone
    a, b = np.pad(a.astype(np.int64), ((0, 0), (0, odd))), np.pad(b.astype(np.int64), ((0, odd), (0, 0)))
    pairs = a[:, 0::2, None] * b[None, 0::2] + a[:, 1::2, None] * b[None, 1::2]
    return np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=1)


@cache
def exact(product: Product) -> bool:
    """Return whether onnxruntime computes such a product right on this processor; one that it does not take is not wrong."""
    for rows in ROWS:
        want = expected(product, rows)
        got = answer(product, rows)
        if got is not None and np.abs(got - want).max() > 0.02 * np.abs(want).max() + 1:
            return False
    return True


def expected(product: Product, rows: int) -> np.ndarray:
    """Return what the arithmetic says."""
    return _scaled(product, _activations(product, rows) @ (_weights(product) - _zero(product.weights)))


def answer(product: Product, rows: int) -> np.ndarray | None:
    """Return what onnxruntime says, or None where it has no such kernel."""
    whole = _activations(product, rows)
    sized = whole[:, :, None, None] if "Conv" in product.op else whole
    fed = sized.astype(np.float32) if product.domain == QDQ or "x" in _roles(product) else sized.astype(product.activations)
    try:
        found = ort.session(_model(product), threads=1).run(None, {"a": fed})[0]
    except Exception:  # whatever onnxruntime raises about a type that it has no kernel for
        return None
    return np.asarray(found).reshape(rows, COLUMNS).astype(np.float64)


def features() -> tuple[str, ...]:
    """Return the instruction sets of this processor that products of integers may be made with, as torch names them."""
    import torch

    told = torch.cpu.get_capabilities()
    words = ("avx2", "avx512_f", "amx", "vnni", "neon", "dot", "i8mm", "sve")
    return tuple(sorted(name for name, there in told.items() if there is True and any(word in name for word in words)))


def _roles(product: Product) -> list[str]:
    if (product.domain, product.op) == BLOCKS:
        return ["x", "b", "sb"]
    return INPUTS[product.domain, product.op].split() if product.domain != QDQ else ["a", "b"]


def _activations(product: Product, rows: int) -> np.ndarray:
    """Return the largest there are; for what is rounded while it comes, numbers that become these."""
    if "x" in _roles(product):
        return np.ones((rows, TERMS), np.int64)
    return np.full((rows, TERMS), np.iinfo(product.activations).max, np.int64)


def _weights(product: Product) -> np.ndarray:
    """Return columns of the largest weights, and columns of the smallest."""
    span = np.iinfo(product.weights)
    return np.repeat(np.array([[span.max, span.min]], np.int64), TERMS, axis=0).repeat(COLUMNS // 2, axis=1)


def _zero(kind: str) -> int:
    return 0 if kind == "int8" else 128


def _step(product: Product) -> float:
    """Return the scale of what comes out, for operators that round it to eight bits: the largest becomes a hundred."""
    return TERMS * np.iinfo(product.activations).max * 128 / 100


def _scaled(product: Product, whole: np.ndarray) -> np.ndarray:
    rounds = "sy" in _roles(product)
    return np.rint(whole / _step(product)) + _zero(product.activations) if rounds else whole.astype(np.float64)


@cache
def _model(product: Product) -> bytes:
    """Return a model of the one product, with constant weights."""
    import onnx

    made, roles = onnx.helper, _roles(product)
    kind = made.np_dtype_to_tensor_dtype(np.dtype("float32" if product.domain == QDQ or "x" in roles else product.activations))
    weights = _weights(product).astype(product.weights)
    shape = ["rows", TERMS, 1, 1] if "Conv" in product.op else ["rows", TERMS]
    held: dict[str, np.ndarray] = {
        "b": np.ascontiguousarray(weights.T)[:, :, None, None] if "Conv" in product.op else weights,
        "sa": np.float32(1), "sb": np.float32(1), "sy": np.float32(_step(product)),
        "za": np.zeros((), product.activations), "zb": np.array(_zero(product.weights), product.weights),
        "zy": np.array(_zero(product.activations), product.activations),
    }  # fmt: skip
    held = {name: np.asarray(array) for name, array in held.items()}
    if product.domain == QDQ:
        nodes = [
            made.make_node("QuantizeLinear", ["a", "sa", "za"], ["aq"]),
            made.make_node("DequantizeLinear", ["aq", "sa", "za"], ["ar"]),
            made.make_node("DequantizeLinear", ["b", "sb", "zb"], ["br"]),
            made.make_node(product.op, ["ar", "br"], ["yr"]),
            made.make_node("QuantizeLinear", ["yr", "sy", "zy"], ["yq"]),
            made.make_node("DequantizeLinear", ["yq", "sy", "zy"], ["y"]),
        ]
    elif (product.domain, product.op) == BLOCKS:
        held |= {"b": weights.T.reshape(COLUMNS, -1, product.block), "sb": np.ones((COLUMNS, TERMS // product.block), np.float32)}
        sizes = {"K": TERMS, "N": COLUMNS, "bits": 8, "block_size": product.block, "accuracy_level": 4}
        nodes = [made.make_node(product.op, ["a", "b", "sb"], ["y"], domain=product.domain, **sizes)]
    else:
        nodes = [made.make_node(product.op, ["a" if r == "x" else r for r in roles], ["y"], domain=product.domain)]
    used = {name for node in nodes for name in node.input}
    stored = [onnx.numpy_helper.from_array(np.ascontiguousarray(held[n]), n) for n in held if n in used]
    graph = made.make_graph(
        nodes, "product", [made.make_tensor_value_info("a", kind, shape)], [onnx.ValueInfoProto(name="y")], stored
    )
    versions = [made.make_opsetid("", 17), made.make_opsetid("com.microsoft", 1)]
    return bytes(made.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString())
