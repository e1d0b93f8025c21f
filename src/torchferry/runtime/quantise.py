"""Weights in 8 or 4 bits, for onnxruntime's own kernels; and what it costs, measured beside the exact model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from torchferry.check.reading.fingerprint import CERTIFICATE_KEY, QUANTISED_KEY
from torchferry.errors import UsageError, did_you_mean
from torchferry.files import data_name
from torchferry.foreign import onnxruntime as ort
from torchferry.ops.draft import transposed
from torchferry.records.documents import Cost
from torchferry.runtime.tied import TURNED, share_with_embeddings
from torchferry.saturation.asked import features

BITS = {"int8": 8, "int4": 4}
# weights that share a scale, the fastest first. On a GPT-2 blocks of 32 move int8's logits by a fifth less than those of 128, and
# take a quarter longer for a token; int4 is there to be fast (docs/decisions/0010)
BLOCKS = {"int8": (128, 32, 16), "int4": (128,)}
SHOWN = f"{QUANTISED_KEY}.shown"


def quantise(source: Path, destination: Path, precision: str, *, block: int | None = None, spared: Sequence[str] = ()) -> int:
    """Write the model at `source` with the constant matrices of its MatMul and Gemm nodes in fewer bits; return the block.

    block: how many weights share a scale; the fastest if none is named. spared: products to be left exact.
    The form is MatMulNBits, whose kernels sum without loss on every processor that they were tried on (docs/decisions/0010).
    The certificate of the exact file is not carried over: it speaks of other numbers.
    """
    if precision not in BITS:
        raise UsageError(f"precision is {' or '.join(BITS)}, not {precision!r}{did_you_mean(precision, BITS)}")
    model = _loaded(source)
    block = block or BLOCKS[precision][0]
    model = ir.from_proto(ort.quantised(ir.to_proto(model), BITS[precision], block, spared))
    if precision == "int8":
        share_with_embeddings(model)
    model.metadata_props.pop(CERTIFICATE_KEY, None)
    model.metadata_props[QUANTISED_KEY] = precision
    ir.save(model, destination, external_data=data_name(destination.name))
    return block


def note(path: Path, measured: Cost) -> None:
    """Write into a quantised file what it was measured to change, and on which instruction sets; weights stay where they lie."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    entry = next((p for p in model.metadata_props if p.key == SHOWN), None) or model.metadata_props.add()
    entry.key, entry.value = SHOWN, json.dumps(asdict(measured))
    path.write_bytes(model.SerializeToString())


def products(source: Path) -> list[str]:
    """Return the names of the products that would be quantised, in the order of the graph."""
    constant = [n for n in _loaded(source).graph if n.op_type == "MatMul" and n.inputs[1] and n.inputs[1].const_value is not None]
    return [str(node.name) for node in constant]


def _loaded(source: Path) -> ir.Model:
    model = ir.load(source)
    ir.external_data.load_to_model(model)
    only_matmuls(model)
    return model


def only_matmuls(model: ir.Model) -> None:
    """Write every product with a constant matrix as a MatMul, the one form that the quantiser knows."""
    for node in list(model.graph):
        if node.domain == "" and node.op_type == "Gemm" and _plain_gemm(node):
            _split_gemm(model.graph, node)
        elif node.domain == "" and node.op_type == "MatMul" and (matrix := transposed(node.inputs[1])) is not None:
            node.replace_input_with(1, _turned(model.graph, matrix))


def cost(
    exact: Any, quantised: Any, texts: Sequence[torch.Tensor], precision: str, block: int = 0, spared: tuple[str, ...] = ()
) -> Cost:
    """Return what quantising changed over texts of token ids, both models reading the same ones."""
    same: list[torch.Tensor] = []
    moved: list[torch.Tensor] = []
    with torch.no_grad():
        for ids in texts:
            wanted, got = (m(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.float() for m in (exact, quantised))
            same.append((wanted.argmax(-1) == got.argmax(-1)).flatten())
            moved.append(((wanted - got).abs() / wanted.std()).flatten())
    equal, gap = torch.cat(same), torch.cat(moved)
    share, here = float(equal.float().mean()), features()
    return Cost(precision, equal.numel(), share, float(gap.mean()), float(gap.max()), block, spared, here)


def _plain_gemm(node: ir.Node) -> bool:
    """Whether a Gemm is x @ W + b with a constant W."""
    one = all(node.attributes.get_float(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    return (
        one
        and node.attributes.get_int("transA", 0) == 0
        and node.inputs[1] is not None
        and node.inputs[1].const_value is not None
    )


def _split_gemm(graph: ir.Graph, node: ir.Node) -> None:
    matrix = node.inputs[1]
    assert matrix is not None
    if node.attributes.get_int("transB", 0):
        matrix = _turned(graph, matrix)
    made = [ir.node("MatMul", [node.inputs[0], matrix], name=f"{node.name}_product")]
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        made.append(ir.node("Add", [made[0].outputs[0], node.inputs[2]], name=f"{node.name}_bias"))
    made[0].outputs[0].name = f"{node.outputs[0].name}_product"
    ir.convenience.replace_nodes_and_values(graph, node, [node], made, [node.outputs[0]], [made[-1].outputs[0]])


def _turned(graph: ir.Graph, matrix: ir.Value) -> ir.Value:
    """Return an initializer that holds a constant matrix with its axes swapped."""
    name = f"{matrix.name}{TURNED}"
    if name in graph.initializers:
        return graph.initializers[name]
    assert matrix.const_value is not None
    tensor = ir.tensor(np.ascontiguousarray(matrix.const_value.numpy().T), name=name)
    made = ir.Value(name=name, const_value=tensor, shape=tensor.shape, type=ir.TensorType(tensor.dtype))
    graph.register_initializer(made)
    return made
