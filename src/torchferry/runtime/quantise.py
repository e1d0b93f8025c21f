"""Weights in 8 or 4 bits, for onnxruntime's own kernels; and what it costs, measured beside the exact model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from torchferry import ort
from torchferry.certificate import KEY
from torchferry.errors import UsageError, did_you_mean
from torchferry.runtime.columns import quantise_columns
from torchferry.translate.draft import transposed

BITS = {"int8": 8, "int4": 4}
# weights that share a scale. int8 comes to blocks only where it must be exact: the smallest with a fast kernel. int4 is there to
# be fast: on a GPT-2, blocks of 128 move the logits by a sixth more than blocks of 32, and take an eighth less time a token
BLOCK = {"int8": 32, "int4": 128}
COLUMNS, BLOCKS = "a scale for each column", "a scale for each block of weights"
FAR = 0.05  # of the logits' spread: int8 that moves them further on average has met outliers, and blocks keep those apart
NOTE = "pkg.torchferry.quantised"


@dataclass(frozen=True, slots=True)
class Cost:
    """What quantising changed, over some texts: the share of positions with the same next token, and how far logits moved."""

    precision: str
    positions: int
    same_token: float  # share of positions where the likeliest next token is the same
    mean_difference: float  # of a logit, in units of the logits' own standard deviation
    worst_difference: float  # likewise
    form: str = ""  # which weights share a scale

    def __str__(self) -> str:
        form = f" ({self.form})" if self.form else ""
        return (
            f"{self.precision}{form}: "
            f"the likeliest next token is the same at {self.same_token:.1%} of {self.positions} positions; "
            f"logits moved by {self.mean_difference:.3f} of their spread on average, {self.worst_difference:.3f} at worst"
        )


def quantise(source: Path, destination: Path, precision: str, *, form: str | None = None) -> str:
    """Write the model at `source` with the constant matrices of its MatMul and Gemm nodes in fewer bits; return the form.

    form: COLUMNS (int8 only, and what it gets when none is named: fast) or BLOCKS (nearer to the exact weights).
    The certificate of the exact file is not carried over: it speaks of other numbers.
    """
    if precision not in BITS:
        raise UsageError(f"precision is {' or '.join(BITS)}, not {precision!r}{did_you_mean(precision, BITS)}")
    model = ir.load(source)
    ir.external_data.load_to_model(model)
    only_matmuls(model)
    model.metadata_props.pop(KEY, None)
    model.metadata_props[NOTE] = precision
    chosen = form or (COLUMNS if precision == "int8" and _float32(model) else BLOCKS)
    if chosen == COLUMNS:
        quantise_columns(model)
    else:
        model = ir.from_proto(ort.quantised(ir.to_proto(model), BITS[precision], BLOCK[precision]))
    ir.save(model, destination, external_data=destination.name + ".data")
    return chosen


def _float32(model: ir.Model) -> bool:
    return all(i.dtype not in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16) for i in model.graph.inputs)


def only_matmuls(model: ir.Model) -> None:
    """Write every product with a constant matrix as a MatMul, the one form that the quantiser knows."""
    for node in list(model.graph):
        if node.domain == "" and node.op_type == "Gemm" and _plain_gemm(node):
            _split_gemm(model.graph, node)
        elif node.domain == "" and node.op_type == "MatMul" and (matrix := transposed(node.inputs[1])) is not None:
            node.replace_input_with(1, _turned(model.graph, matrix))


def cost(exact: Any, quantised: Any, texts: Sequence[torch.Tensor], precision: str, form: str = "") -> Cost:
    """Return what quantising changed over texts of token ids, both models reading the same ones."""
    same: list[torch.Tensor] = []
    moved: list[torch.Tensor] = []
    with torch.no_grad():
        for ids in texts:
            wanted, got = (m(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.float() for m in (exact, quantised))
            same.append((wanted.argmax(-1) == got.argmax(-1)).flatten())
            moved.append(((wanted - got).abs() / wanted.std()).flatten())
    equal, gap = torch.cat(same), torch.cat(moved)
    return Cost(precision, equal.numel(), float(equal.float().mean()), float(gap.mean()), float(gap.max()), form)


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
    name = f"{matrix.name}.transposed"
    if name in graph.initializers:
        return graph.initializers[name]
    assert matrix.const_value is not None
    tensor = ir.tensor(np.ascontiguousarray(matrix.const_value.numpy().T), name=name)
    made = ir.Value(name=name, const_value=tensor, shape=tensor.shape, type=ir.TensorType(tensor.dtype))
    graph.register_initializer(made)
    return made
