"""How the constant of one node can be read as an example's size, from what reached it at that size and at another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from torchferry.check.proof.moved_size import Moved
from torchferry.check.reading import graph
from torchferry.check.running.trace import Values, ancestors
from torchferry.records.rewrites import (
    AllowZero,
    AtMost,
    Difference,
    DropInputs,
    EqualParts,
    Filled,
    MadeConstant,
    NewShape,
    SizeOf,
    SizeRewrite,
    Sizes,
    SizeTerm,
    ToTheEnd,
)
from torchferry.repair.search.baked import patterns
from torchferry.repair.search.baked.reshape import new_targets

LAST = (1 << 63) - 1  # as far as an axis goes
ELEMENTWISE = frozenset({
    "Add", "Sub", "Mul", "Div", "Pow", "Where", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
    "Min", "Max", "Sum", "Mean", "Mod", "PRelu",
})  # fmt: skip
RECURRENT = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}  # where their initial states stand


def readings(
    model: onnx.ModelProto, node: onnx.NodeProto, values: tuple[Values, Values], moved: Moved, failing: bool
) -> list[SizeRewrite]:
    """Return rewrites, likeliest first, that let a node follow the sizes that moved; some make sense only where it fails."""
    old, new = values
    first, label = node.input[0] if node.input else "", graph.label(node)
    a, b = _shape(old, first), _shape(new, first)
    if node.op_type in ("Reshape", "Expand") and a is not None and b is not None and _fixed(model, node.input[1]):
        target = old.get(node.input[1])
        found = new_targets(node, target, (a, b), moved) if target is not None else []
        return [NewShape(label, sizes) for sizes in found]
    if node.op_type == "Resize" and a is not None and b is not None:
        return _resized(model, node, old, (a, b))
    if not failing:
        return []
    if node.op_type == "Expand" and _fixed(model, first):
        return _spread(node, old, new)
    if node.op_type == "Reshape" and 0 in np.asarray(new.get(node.input[1], ())).reshape(-1) and (graph.opset(model) or 0) >= 14:
        return [AllowZero(label)]
    if node.op_type == "Split":
        return _parts(node, _part_sizes(node, old), b)
    if node.op_type == "TopK":
        return [AtMost(label, graph.attributes(node).get("axis", -1) % len(b or (1,)))]
    if node.op_type in RECURRENT:
        return _initial_states(model, node, old, new)
    if node.op_type in ELEMENTWISE or node.op_type == "Concat":
        return _operand(model, node, old, new)
    return []


def cut_at_example(model: onnx.ModelProto, node: onnx.NodeProto, old: Values, new: Values) -> list[SizeRewrite]:
    """Return how to mend a Slice that took all there was of the example, up to a constant end, and now cuts off."""
    if node.op_type != "Slice" or len(node.input) < 4 or not all(_fixed(model, i) for i in node.input[1:] if i):
        return []
    a, b = _shape(old, node.input[0]), _shape(new, node.input[0])
    ends, axes = (np.asarray(old.get(node.input[i], ())).reshape(-1).tolist() for i in (2, 3))
    if a is None or b is None or len(ends) != len(axes):
        return []
    free = [int(LAST if a[x] == e and b[x] > e else e) for e, x in zip(ends, axes, strict=True)]
    return [ToTheEnd(graph.label(node), tuple(free))] if free != ends else []


def _resized(
    model: onnx.ModelProto, node: onnx.NodeProto, old: Values, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> list[SizeRewrite]:
    """Return how to let a Resize to constant sizes keep the axes that it kept at the example's: its batch."""
    sizes = old.get(node.input[3]) if len(node.input) > 3 and _fixed(model, node.input[3]) else None
    if sizes is None or len(sizes) != len(shapes[0]) or graph.attributes(node).get("axes"):
        return []
    free = tuple(
        SizeOf(node.input[0], i) if was == size != now else int(size)
        for i, (size, was, now) in enumerate(zip(sizes.tolist(), *shapes, strict=True))
    )
    return [NewShape(graph.label(node), free, input=3)] if free != tuple(sizes.tolist()) else []


def _spread(node: onnx.NodeProto, old: Values, new: Values) -> list[SizeRewrite]:
    """Return how to shrink a constant of one value, so that it spreads to any size: an initial state of zeros."""
    value, was, now = old.get(node.input[0]), old.get(node.input[1]), new.get(node.input[1])
    if not isinstance(value, np.ndarray) or was is None or now is None or not len(was) == len(now) == value.ndim:
        return []
    spread = enumerate(zip(value.shape, was, now, strict=True))
    sizes = tuple(s if a == b else SizeOf(node.input[0], i) for i, (s, a, b) in spread)
    pattern = patterns.describe(value, sizes, slim=True)
    return [MadeConstant(graph.label(node), node.input[0], pattern)] if isinstance(pattern, Filled) else []


def _initial_states(model: onnx.ModelProto, node: onnx.NodeProto, old: Values, new: Values) -> list[SizeRewrite]:
    """Return how to let the initial states of a recurrent node follow the batch: without them, where they are zeros."""
    given = [i for i in RECURRENT[node.op_type] if i < len(node.input) and node.input[i]]
    states = [i for i in given if _fixed(model, node.input[i])]
    if states and all(isinstance(v := old.get(node.input[i]), np.ndarray) and not v.any() for i in states):
        return [DropInputs(graph.label(node), tuple(states))]
    makers = graph.makers(model.graph)
    spread = [m for i in given if (m := makers.get(node.input[i])) is not None and m.op_type == "Expand"]
    return [r for m in spread if _fixed(model, m.input[0]) for r in _spread(m, old, new)]


def _parts(node: onnx.NodeProto, parts: list[int], shape: tuple[int, ...] | None) -> list[SizeRewrite]:
    """Return how the parts of a Split may follow its size: all alike, or all but one, the last or the first, as they are."""
    label = graph.label(node)
    found: list[SizeRewrite] = [EqualParts(label)] if len(set(parts)) == 1 else []
    if shape is None or len(node.input) < 2 or not parts:
        return found
    axis = int(graph.attributes(node).get("axis", 0)) % len(shape)
    for rest in (len(parts) - 1, 0):
        others = sum(p for i, p in enumerate(parts) if i != rest)
        if shape[axis] > others:
            whole = SizeOf(node.input[0], axis)
            found.append(NewShape(label, tuple(Difference(whole, others) if i == rest else p for i, p in enumerate(parts))))
    return found


def _part_sizes(node: onnx.NodeProto, old: Values) -> list[int]:
    stored = graph.attributes(node).get("split")
    given = old.get(node.input[1]) if len(node.input) > 1 else None
    return [int(s) for s in (stored if stored is not None else given if given is not None else ())]


def _operand(model: onnx.ModelProto, node: onnx.NodeProto, old: Values, new: Values) -> list[SizeRewrite]:
    """Return how to make a constant operand fit the others, where its pattern, or what it was cut from, shows how."""
    fixed = [i for i in node.input if i and _fixed(model, i) and isinstance(old.get(i), np.ndarray) and old[i].ndim]
    others = [i for i in node.input if i and i not in fixed and _shape(old, i) is not None and _shape(new, i) is not None]
    found: list[SizeRewrite] = []
    for name in fixed:
        sizes = _sizes_beside(node, old[name].shape, others, old, new)
        if sizes == old[name].shape:
            continue
        pattern = patterns.describe(old[name], sizes, slim=node.op_type in ELEMENTWISE)
        if pattern is not None:
            found.append(MadeConstant(graph.label(node), name, pattern))
        else:
            found += _cut_from(model, name, sizes, old)
    return found


def _cut_from(model: onnx.ModelProto, name: str, sizes: Sizes, old: Values) -> list[SizeRewrite]:
    """Return how to take more or fewer rows of a table, where the constant is rows of one: positions counted, or cut off."""
    maker = graph.makers(model.graph).get(name)
    while maker is not None and maker.op_type in ("Identity", "Cast", "Unsqueeze"):
        if maker.op_type == "Unsqueeze":
            sizes = tuple(s for s in sizes if s != 1)
        name = maker.input[0]
        maker = graph.makers(model.graph).get(name)
    if maker is None or maker.op_type != "Gather" or graph.attributes(maker).get("axis", 0) != 0:
        return []
    indices = old.get(maker.input[1])
    if not isinstance(indices, np.ndarray) or len(sizes) < indices.ndim:
        return []
    pattern = patterns.describe(indices, sizes[: indices.ndim], slim=False)
    return [MadeConstant(graph.label(maker), maker.input[1], pattern)] if pattern is not None else []


def _sizes_beside(node: onnx.NodeProto, shape: tuple[int, ...], others: list[str], old: Values, new: Values) -> Sizes:
    """Return the constant's sizes with those that no longer fit the other operands taken from them."""
    sizes: list[SizeTerm] = list(shape)
    joined = graph.attributes(node).get("axis", 0) if node.op_type == "Concat" else None
    for other in others:
        was, now = old[other].shape, new[other].shape
        for back in range(1, min(len(shape), len(was)) + 1):
            mine, a, b = shape[-back], was[-back], now[-back]
            if joined is not None and joined % len(shape) == len(shape) - back:
                continue
            spread = joined is None and mine == 1  # a size of 1 is repeated by itself, but not by Concat
            if mine == a and a != b and not spread:
                sizes[-back] = SizeOf(other, len(now) - back)
    return tuple(sizes)


def _fixed(model: onnx.ModelProto, name: str) -> bool:
    """Whether a value depends on no input of the graph."""
    stored = {t.name for t in model.graph.initializer}
    inputs = {i.name for i in model.graph.input} - stored
    return not (ancestors(model.graph, name) & inputs)


def _shape(values: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    value = values.get(name)
    return tuple(value.shape) if isinstance(value, np.ndarray) else None
