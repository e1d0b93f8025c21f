"""The numbers that values are held against: in what eager was seen to do, in the user's source, and in the file.

Each with the inputs that it is about where that was seen; a number of the source or of the file may be about any of them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import torch
from onnx import numpy_helper

from torchferry.verify.run.decisions import NARROW, Decision
from torchferry.verify.trials.landmarks import tree_of, written_by_users
from torchferry.verify.trials.work import NO_LOOPS, Loops

MOST = 48  # numbers for each input; those that eager was seen to use come first
FEW = 8  # numbers of one constant of a file
LARGEST = 1e12  # what goes further stands for infinity, as in a mask that is added
# operators of a file, and which of their inputs hold a number that values are held against
AGAINST = {
    "Less": (0, 1), "LessOrEqual": (0, 1), "Greater": (0, 1), "GreaterOrEqual": (0, 1), "Equal": (0, 1), "Clip": (1, 2),
    "Min": range(8), "Max": range(8), "Mod": (1,), "Slice": (1, 2), "Range": (0, 1), "TopK": (1,), "OneHot": (1,),
}  # fmt: skip
THROUGH = ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Expand", "CastLike", "Neg")
CALLS = (
    "clamp",
    "clip",
    "clamp_min",
    "clamp_max",
    "where",
    "minimum",
    "maximum",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "masked_fill",
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number that values are held against, and the inputs that it is about; None: any of them."""

    value: float
    inputs: frozenset[int] | None = None


def numbers(decisions: Iterable[Decision], module: torch.nn.Module, graph: onnx.GraphProto) -> list[Number]:
    """Return the numbers, most telling first, each once for the same inputs."""
    found: dict[Number, None] = {}
    for decision in decisions:
        if decision.kind in ("compare", "clip", "buckets", "digits", "cast", "label"):
            found |= dict.fromkeys(Number(n, decision.inputs) for n in decision.numbers)
    seen = {n.value for n in found}
    for value in (*in_source(module), *in_file(graph)):
        if value not in seen:
            found.setdefault(Number(value))
    return [n for n in found if math.isfinite(n.value) and abs(n.value) < LARGEST]


def in_source(module: torch.nn.Module) -> Iterator[float]:
    """Yield the numbers that users compare with or clip to in their source, with those of attributes named there."""
    for part in module.modules():
        if written_by_users(type(part)):
            yield from (n for n in _compared(tree_of(type(part)), part) if math.isfinite(n))


def _compared(tree: ast.AST, part: torch.nn.Module) -> Iterator[float]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from _values(node, part)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.strip("_") in CALLS:
            for argument in (*node.args, *(k.value for k in node.keywords)):
                yield from _values(argument, part)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv):
            yield from _values(node.right, part)


def _values(node: ast.AST, part: torch.nn.Module) -> Iterator[float]:
    """Yield the numbers in an expression: written out, with their signs, or as attributes of the module."""
    negative = {id(n.operand) for n in ast.walk(node) if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub)}
    for inner in ast.walk(node):
        value: Any = None
        if isinstance(inner, ast.Constant):
            value = inner.value
        elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "self":
            value = getattr(part, inner.attr, None)
            if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
                value = float(value)
        if type(value) in (int, float):
            yield -float(value) if id(inner) in negative else float(value)


def in_file(graph: onnx.GraphProto) -> list[float]:
    """Return the numbers that values are held against in a file, each once, in the file's order."""
    return list(dict.fromkeys(v for part in graphs(graph) for v in _of_graph(part)))


def _of_graph(graph: onnx.GraphProto) -> Iterator[float]:
    stored = constants(graph)
    makers = {o: n for n in graph.node for o in n.output}
    for node in graph.node:
        places = AGAINST.get(node.op_type, ())
        for place, name in enumerate(node.input):
            if place in places and (tensor := _resolved(name, stored, makers)) is not None:
                yield from _few(tensor)
        if node.op_type in ("Clip", "ThresholdedRelu", "Shrink", "HardSigmoid"):
            yield from (float(a.f) for a in node.attribute if a.type == onnx.AttributeProto.FLOAT)
        if node.op_type == "Cast":
            yield from NARROW.get(onnx.TensorProto.DataType.Name(node.attribute[0].i).lower(), ())


def _resolved(name: str, stored: dict[str, onnx.TensorProto], makers: dict[str, onnx.NodeProto]) -> onnx.TensorProto | None:
    """Return the constant behind a name, through nodes that leave its numbers as they are."""
    for _ in range(4):
        if name in stored:
            return stored[name]
        node = makers.get(name)
        if node is None or node.op_type not in THROUGH:
            return None
        name = node.input[0]
    return None


def _few(tensor: onnx.TensorProto) -> list[float]:
    """Return the numbers of a small constant that lies in the file itself."""
    if math.prod(tensor.dims) > FEW or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return []
    array = numpy_helper.to_array(tensor)
    return [float(v) for v in array.reshape(-1)] if array.dtype.kind in "iuf" else []


def constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the constants of a graph by name."""
    stored = {t.name: t for t in graph.initializer}
    return stored | {n.output[0]: a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def loops(graph: onnx.GraphProto) -> Loops:
    """Return what a graph runs over and over."""
    found = NO_LOOPS
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                inner, again = loops(attribute.g), node.op_type in ("Loop", "Scan")
                nodes = inner.nodes or (len(attribute.g.node) if again else 0)
                found = Loops(found.nodes + nodes, max(found.depth, inner.depth + again))
    return found


def for_input(found: Sequence[Number], index: int) -> list[float]:
    """Return the numbers that one input is, or may be, held against."""
    return list(dict.fromkeys(n.value for n in found if n.inputs is None or index in n.inputs))[:MOST]
