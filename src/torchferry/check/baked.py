"""Sizes of an example that were baked into a graph: found by comparing a run at the example's sizes with one that fails.

At each node that holds a constant, the shapes of both runs tell which entries of the constant are an example's size:
those that stand for an axis which differs. The rewrites are planned here, tried out, and carried out by the passes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from torchferry.check import graph, patterns, witness
from torchferry.check.passes.shapes import free_axes, rewrite_constants
from torchferry.check.reshape import Moved, new_targets
from torchferry.check.trace import Feed, Tracer, Values, ancestors
from torchferry.records import Fault

MOST_TRIES = 400
LAST = (1 << 63) - 1  # as far as an axis goes
LONGEST = 40.0  # seconds of trying: a repair should not take longer than exporting again
ELEMENTWISE = frozenset({
    "Add", "Sub", "Mul", "Div", "Pow", "Where", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
    "Min", "Max", "Sum", "Mean", "Mod", "PRelu",
})  # fmt: skip
RECURRENT = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}  # where their initial states stand


@dataclass(frozen=True, slots=True)
class Plan:
    """How to let sizes move: the axes to free, the rewrites in order, and the node where the first constant sits."""

    axes: dict[str, dict[str, str]]
    rewrites: list[dict[str, Any]] = field(default_factory=list)
    example: dict[str, Any] = field(default_factory=dict)  # the feed at the example's sizes


def plan(tracer: Tracer, example: Feed, feed: Feed, axes: dict[str, dict[str, str]]) -> Plan | None:
    """Return how to make the model run on `feed` too and still give the same on `example`; None if we do not know."""
    freed = onnx.ModelProto()
    freed.CopyFrom(tracer.model)
    free_axes(freed, {"axes": axes})
    before = tracer.run(freed, example)
    if isinstance(before, Fault):
        return None
    return _search(Search(tracer, example, feed, axes, before), freed, [])


@dataclass(slots=True)
class Search:
    """What stays the same while rewrites are tried, and how many more may be."""

    tracer: Tracer
    example: Feed
    feed: Feed
    axes: dict[str, dict[str, str]]
    before: list[Any]
    left: int = MOST_TRIES
    until: float = field(default_factory=lambda: time.monotonic() + LONGEST)


def _search(search: Search, model: onnx.ModelProto, done: list[dict[str, Any]]) -> Plan | None:
    """Return a plan that begins with the rewrites done; where a constant can be read in several ways each is tried."""
    trial = Tracer(search.tracer.worker, model, search.tracer.home, search.tracer.scratch)
    answer = trial.run(trial.model, search.feed)
    failing = trial.failure(search.feed, answer).node if isinstance(answer, Fault) else None
    options = _next(trial, search.example, search.feed, failing, done)
    if not options:
        if failing is not None or not _same(search.before, trial.run(trial.model, search.example)):
            return None
        found = Plan(_with_outputs(trial.model, search.axes, search.before, answer), done, dict(search.example))
        return (
            found if _shown(search, trial, found) and not numbers_of_example(trial.model, search.example, search.feed) else None
        )
    for option in options:
        search.left -= 1
        if search.left < 0 or time.monotonic() > search.until:
            return None
        changed = onnx.ModelProto()
        changed.CopyFrom(trial.model)
        rewrite_constants(changed, {"rewrites": [option]})
        if (found_plan := _search(search, changed, [*done, option])) is not None:
            return found_plan
    return None


def _shown(search: Search, trial: Tracer, found: Plan) -> bool:
    """Whether the plan is shown to be right at other sizes, or is such that nothing need be shown."""
    moved = _moved_inputs(search.example, search.feed)
    old, new = trial.values(search.example), trial.values(search.feed)
    if isinstance(old, Fault) or isinstance(new, Fault):
        return False
    old, new = {**search.example, **old}, {**search.feed, **new}
    if witness.taken_whole(trial.model, old, new):
        return False
    batch = all(axis == 0 for _, axis, _, _ in moved)
    if not batch and not witness.needed(trial.model, found.rewrites, old, new):
        return True
    return witness.shown(witness.Shown(search.tracer, trial.model, search.example, search.before, search.feed, moved))


def _same(before: Any, after: Any) -> bool:
    if isinstance(after, Fault) or len(before) != len(after):
        return False
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        for a, b in zip(before, after, strict=True)
        if isinstance(a, np.ndarray) and a.dtype.kind in "fiub"
    )


def _with_outputs(model: onnx.ModelProto, axes: dict[str, dict[str, str]], before: Any, after: Any) -> dict[str, dict[str, str]]:
    """Return the axes to free, with those of the outputs that moved along."""
    names = {axis: name for moved in axes.values() for axis, name in moved.items()}
    freed = {name: dict(moved) for name, moved in axes.items()}
    for value, old, new in zip(model.graph.output, before, after, strict=True):
        dims = value.type.tensor_type.shape.dim
        if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray) or not len(dims) == old.ndim == new.ndim:
            continue
        moved = {
            str(i): names.get(str(i), f"{value.name}_{i}")
            for i, (a, b) in enumerate(zip(old.shape, new.shape, strict=True))
            if a != b and dims[i].HasField("dim_value")
        }
        if moved:
            freed[value.name] = moved
    return freed


def _next(tracer: Tracer, example: Feed, feed: Feed, failing: str | None, done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rewrites, likeliest first, of the first node whose constant holds an example's size, up to the failing one."""
    small, large = tracer.values(example), tracer.values(feed, before=failing)
    if isinstance(small, Fault) or isinstance(large, Fault):
        return []
    old, new = {**_stored(tracer.model), **example, **small}, {**_stored(tracer.model), **feed, **large}
    sizes = _moved_inputs(example, feed)
    seen = {_which(r) for r in done}
    order = graph.ordered(tracer.model.graph)
    for node in order:
        found = _examine(tracer.model, node, (old, new), sizes, graph.label(node) == failing)
        if fresh := [r for r in found if _which(r) not in seen]:
            # layers are alike: what was right for one is likely right for the next
            return sorted(fresh, key=lambda r: r.get("sizes") not in [d.get("sizes") for d in done])
        if graph.label(node) == failing:
            break
    cut = [r for n in order for r in _cut_at_example(tracer.model, n, old, new)] if failing is not None else []
    return [r for r in cut if _which(r) not in seen][:1]


def _which(rewrite: dict[str, Any]) -> tuple[str, ...]:
    """Return what a rewrite is about: a node's sizes are rewritten once, its constants each once."""
    return rewrite["node"], rewrite["do"], "" if rewrite["do"] == "new-shape" else str(rewrite.get("value"))


def _cut_at_example(model: onnx.ModelProto, node: onnx.NodeProto, old: Values, new: Values) -> list[dict[str, Any]]:
    """Return how to mend a Slice that took all there was of the example, up to a constant end, and now cuts off."""
    if node.op_type != "Slice" or len(node.input) < 4 or not all(_fixed(model, i) for i in node.input[1:] if i):
        return []
    a, b = _shape(old, node.input[0]), _shape(new, node.input[0])
    ends, axes = (np.asarray(old.get(node.input[i], ())).reshape(-1).tolist() for i in (2, 3))
    if a is None or b is None or len(ends) != len(axes):
        return []
    free = [int(LAST if a[x] == e and b[x] > e else e) for e, x in zip(ends, axes, strict=True)]
    return [{"do": "to-the-end", "node": graph.label(node), "ends": free}] if free != ends else []


def _stored(model: onnx.ModelProto) -> Values:
    return dict(graph.constants(model.graph))


def _moved_inputs(example: Feed, feed: Feed) -> Moved:
    """Return the axes of inputs that differ: (input, axis, the example's size, the other)."""
    return [
        (name, axis, a, b)
        for name, array in feed.items()
        if isinstance(array, np.ndarray) and isinstance(example.get(name), np.ndarray)
        for axis, (a, b) in enumerate(zip(example[name].shape, array.shape, strict=True))
        if a != b
    ]


def _examine(
    model: onnx.ModelProto, node: onnx.NodeProto, values: tuple[Values, Values], moved: Moved, failing: bool
) -> list[dict[str, Any]]:
    old, new = values
    first, label = node.input[0] if node.input else "", graph.label(node)
    a, b = _shape(old, first), _shape(new, first)
    if node.op_type in ("Reshape", "Expand") and a is not None and b is not None and _fixed(model, node.input[1]):
        target = old.get(node.input[1])
        found = new_targets(node, target, (a, b), moved) if target is not None else []
        return [{"do": "new-shape", "node": label, "sizes": sizes, "value": node.input[1]} for sizes in found]
    if node.op_type == "Resize" and a is not None and b is not None:
        return _resized(model, node, old, (a, b))
    if not failing:
        return []
    if node.op_type == "Expand" and _fixed(model, first):
        return _spread(node, old, new)
    if node.op_type == "Reshape" and 0 in np.asarray(new.get(node.input[1], ())).reshape(-1) and (graph.opset(model) or 0) >= 14:
        return [{"do": "allow-zero", "node": label}]
    if node.op_type == "Split" and len(set(_part_sizes(node, old))) == 1:
        return [{"do": "equal-parts", "node": label}]
    if node.op_type == "TopK":
        return [{"do": "at-most", "node": label, "axis": graph.attributes(node).get("axis", -1) % len(b or (1,))}]
    if node.op_type in RECURRENT:
        states = [i for i in RECURRENT[node.op_type] if i < len(node.input) and node.input[i] and _fixed(model, node.input[i])]
        zero = states and all(isinstance(v := old.get(node.input[i]), np.ndarray) and not v.any() for i in states)
        return [{"do": "drop-inputs", "node": label, "inputs": states}] if zero else []
    if node.op_type in ELEMENTWISE or node.op_type == "Concat":
        return _operand(model, node, old, new)
    return []


def _resized(
    model: onnx.ModelProto, node: onnx.NodeProto, old: Values, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> list[dict[str, Any]]:
    """Return how to let a Resize to constant sizes keep the axes that it kept at the example's: its batch."""
    sizes = old.get(node.input[3]) if len(node.input) > 3 and _fixed(model, node.input[3]) else None
    if sizes is None or len(sizes) != len(shapes[0]) or graph.attributes(node).get("axes"):
        return []
    free: list[Any] = [
        ["size", node.input[0], i] if was == size != now else int(size)
        for i, (size, was, now) in enumerate(zip(sizes.tolist(), *shapes, strict=True))
    ]
    rewrite = {"do": "new-shape", "node": graph.label(node), "sizes": free, "value": node.input[3], "input": 3}
    return [rewrite] if free != sizes.tolist() else []


def _spread(node: onnx.NodeProto, old: Values, new: Values) -> list[dict[str, Any]]:
    """Return how to shrink a constant of one value, so that it spreads to any size: an initial state of zeros."""
    value, was, now = old.get(node.input[0]), old.get(node.input[1]), new.get(node.input[1])
    if not isinstance(value, np.ndarray) or was is None or now is None or not len(was) == len(now) == value.ndim:
        return []
    sizes = [s if a == b else ["size", node.input[0], i] for i, (s, a, b) in enumerate(zip(value.shape, was, now, strict=True))]
    pattern = patterns.describe(value, sizes, slim=True)
    if pattern is None or pattern["pattern"] != "filled":
        return []
    return [{"do": "constant", "node": graph.label(node), "value": node.input[0], **pattern}]


def _part_sizes(node: onnx.NodeProto, old: Values) -> list[int]:
    stored = graph.attributes(node).get("split")
    given = old.get(node.input[1]) if len(node.input) > 1 else None
    return [int(s) for s in (stored if stored is not None else given if given is not None else ())]


def _operand(model: onnx.ModelProto, node: onnx.NodeProto, old: Values, new: Values) -> list[dict[str, Any]]:
    """Return how to make a constant operand fit the others, where its pattern, or what it was cut from, shows how."""
    fixed = [i for i in node.input if i and _fixed(model, i) and isinstance(old.get(i), np.ndarray) and old[i].ndim]
    others = [i for i in node.input if i and i not in fixed and _shape(old, i) is not None and _shape(new, i) is not None]
    found = []
    for name in fixed:
        sizes = _sizes_beside(node, old[name].shape, others, old, new)
        if sizes == list(old[name].shape):
            continue
        pattern = patterns.describe(old[name], sizes, slim=node.op_type in ELEMENTWISE)
        if pattern is not None:
            found.append({"do": "constant", "node": graph.label(node), "value": name, **pattern})
        else:
            found += _cut_from(model, name, sizes, old)
    return found


def _cut_from(model: onnx.ModelProto, name: str, sizes: list[Any], old: Values) -> list[dict[str, Any]]:
    """Return how to take more or fewer rows of a table, where the constant is rows of one: positions counted, or cut off."""
    maker = graph.makers(model.graph).get(name)
    while maker is not None and maker.op_type in ("Identity", "Cast", "Unsqueeze"):
        if maker.op_type == "Unsqueeze":
            sizes = [s for s in sizes if s != 1]
        name = maker.input[0]
        maker = graph.makers(model.graph).get(name)
    if maker is None or maker.op_type != "Gather" or graph.attributes(maker).get("axis", 0) != 0:
        return []
    indices = old.get(maker.input[1])
    if not isinstance(indices, np.ndarray) or len(sizes) < indices.ndim:
        return []
    pattern = patterns.describe(indices, sizes[: indices.ndim], slim=False)
    return [{"do": "constant", "node": graph.label(maker), "value": maker.input[1], **pattern}] if pattern else []


def _sizes_beside(node: onnx.NodeProto, shape: tuple[int, ...], others: list[str], old: Values, new: Values) -> list[Any]:
    """Return the constant's sizes with those that no longer fit the other operands taken from them."""
    sizes: list[Any] = list(shape)
    joined = graph.attributes(node).get("axis", 0) if node.op_type == "Concat" else None
    for other in others:
        was, now = old[other].shape, new[other].shape
        for back in range(1, min(len(shape), len(was)) + 1):
            mine, a, b = shape[-back], was[-back], now[-back]
            if joined is not None and joined % len(shape) == len(shape) - back:
                continue
            spread = joined is None and mine == 1  # a size of 1 is repeated by itself, but not by Concat
            if mine == a and a != b and not spread:
                sizes[-back] = ["size", other, len(now) - back]
    return sizes


def _fixed(model: onnx.ModelProto, name: str) -> bool:
    """Whether a value depends on no input of the graph."""
    stored = {t.name for t in model.graph.initializer}
    inputs = {i.name for i in model.graph.input} - stored
    return not (ancestors(model.graph, name) & inputs)


def _shape(values: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    value = values.get(name)
    return tuple(value.shape) if isinstance(value, np.ndarray) else None


def numbers_of_example(model: onnx.ModelProto, example: Feed, feed: Feed) -> list[str]:
    """Return the nodes that reckon with a number which may be an example's length: a mean written as a factor of 1/16.

    For a batch the rows show whether all is well. For any other axis nothing does, so such a number forbids the repair.
    """
    lengths = {a for _, axis, a, _ in _moved_inputs(example, feed) if axis != 0 and a > 1}
    telling = {float(v) for n in lengths for v in (n, 1 / n, n - 1, np.sqrt(n), 1 / np.sqrt(n)) if v not in (0, 1)}
    constants = graph.constants(model.graph)
    found = []
    for place in graph.nodes_of(model.graph):
        for name in place.node.input if place.node.op_type in ("Mul", "Div", "Add", "Sub", "Pow") else ():
            value = constants.get(name)
            if (
                value is not None
                and value.size == 1
                and any(np.isclose(abs(float(value.reshape(-1)[0])), t, rtol=1e-5) for t in telling)
            ):
                found.append(place.label)
    return found
