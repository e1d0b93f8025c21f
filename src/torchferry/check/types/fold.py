"""What a value must be, worked out from constants and fixed sizes alone; no runtime, no weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph
from torchferry.check.types import dtypes

Sizes = Mapping[str, Sequence[int | str | None]]
Known = dict[str, np.ndarray | None]
DEEPEST = 200  # longer chains are no shape arithmetic

SIMPLE: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Not": np.logical_not,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Identity": lambda x: x,
    "Min": np.minimum,
    "Max": np.maximum,
}


def value(name: str, part: Any, sizes: Sizes, depth: int = 0) -> np.ndarray | None:
    """Return the constant that a value is, or None if it depends on more than constants and fixed sizes."""
    constants: Known = dict(graph.constants(part))
    return _value(name, constants, graph.makers(part), sizes, depth)


def _value(name: str, constants: Known, makers: dict[str, onnx.NodeProto], sizes: Sizes, depth: int) -> np.ndarray | None:
    """Return the constant, and keep it, or that there is none: what each step reads twice is not worked out 2^n times."""
    if name not in constants:
        node = makers.get(name)
        constants[name] = _made(node, constants, makers, sizes, depth) if node is not None and depth <= DEEPEST else None
    return constants[name]


def _made(
    node: onnx.NodeProto, constants: Known, makers: dict[str, onnx.NodeProto], sizes: Sizes, depth: int
) -> np.ndarray | None:
    if node.op_type == "Shape":
        return _shape(node, sizes)
    if node.op_type == "Size" and node.input[0] in sizes and all(isinstance(s, int) for s in sizes[node.input[0]]):
        return np.asarray(np.prod([int(s) for s in sizes[node.input[0]]]), np.int64)  # type: ignore[arg-type]
    if node.op_type == "Gather" and (part := _gathered_size(node, constants, makers, sizes, depth)) is not None:
        return part
    inputs = [_value(i, constants, makers, sizes, depth + 1) for i in node.input if i]
    if any(i is None for i in inputs):
        return None
    return _apply(node, [i for i in inputs if i is not None])


def _shape(node: onnx.NodeProto, sizes: Sizes) -> np.ndarray | None:
    known = sizes.get(node.input[0])
    if known is None:
        return None
    values = graph.attributes(node)
    part = list(known)[values.get("start", 0) : values.get("end", len(known))]
    return np.asarray(part, np.int64) if all(isinstance(s, int) for s in part) else None


def _gathered_size(
    node: onnx.NodeProto, constants: Known, makers: dict[str, onnx.NodeProto], sizes: Sizes, depth: int
) -> np.ndarray | None:
    """Return one size of a shape of which not all need be fixed."""
    shape = makers.get(node.input[0])
    index = _value(node.input[1], constants, makers, sizes, depth + 1)
    if shape is None or shape.op_type != "Shape" or index is None or shape.input[0] not in sizes:
        return None
    known = list(sizes[shape.input[0]])[graph.attributes(shape).get("start", 0) :]
    picked = [known[int(i)] if -len(known) <= int(i) < len(known) else None for i in index.reshape(-1)]
    return np.asarray(picked, np.int64).reshape(index.shape) if all(isinstance(p, int) for p in picked) else None


def _apply(node: onnx.NodeProto, x: list[np.ndarray]) -> np.ndarray | None:
    values = graph.attributes(node)
    most = sum(v.size for v in x) if node.op_type == "Concat" else prod(v.size for v in x)
    if most > graph.SMALL:  # no shape arithmetic, and a few nodes could make it as large as they like
        return None
    try:
        if node.op_type in SIMPLE:
            return np.asarray(SIMPLE[node.op_type](*x))
        if node.op_type == "Cast" and (dtype := dtypes.of_text(f"tensor({dtypes.word(values['to'])})")) is not None:
            return x[0].astype(dtype)
        if node.op_type == "Gather":
            return np.take(x[0], x[1], axis=values.get("axis", 0))
        if node.op_type == "Concat":
            return np.concatenate(x, axis=values["axis"])
        if node.op_type == "Div" and x[0].dtype.kind == "i" and np.all(x[1] != 0):
            return np.asarray(np.trunc(x[0] / x[1]).astype(x[0].dtype))
        axes: list[int] = values.get("axes", x[1].reshape(-1).tolist() if len(x) > 1 else [])
        if node.op_type == "Unsqueeze":
            return np.expand_dims(x[0], tuple(axes))
        if node.op_type == "Squeeze":
            return np.squeeze(x[0], tuple(axes) or None)
    except (ValueError, IndexError, TypeError):
        return None
    return None
