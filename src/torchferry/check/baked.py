"""Sizes of an example that were baked into a graph: found by comparing a run at the example's sizes with one that fails.

At each node that holds a constant, the shapes of both runs tell which entries of the constant are an example's size:
those that stand for an axis which differs. The rewrites are planned here, tried out, and carried out by the passes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from torchferry.check import graph, witness
from torchferry.check.passes.shapes import free_axes, rewrite_constants
from torchferry.check.reshape import Moved
from torchferry.check.size_readings import cut_at_example, readings
from torchferry.check.trace import Feed, Tracer, Values
from torchferry.records import Fault

MOST_TRIES = 400
LONGEST = 40.0  # seconds of trying: a repair should not take longer than exporting again


@dataclass(frozen=True, slots=True)
class Plan:
    """How to let sizes move: the axes to free, the rewrites in order, and the node where the first constant sits."""

    axes: dict[str, dict[str, str]]
    rewrites: list[dict[str, Any]] = field(default_factory=list)
    example: dict[str, Any] = field(default_factory=dict)  # the feed at the example's sizes


def plan(tracer: Tracer, example: Feed, feed: Feed, axes: dict[str, dict[str, str]]) -> Plan | None:
    """Return how to make the model run on `feed` too and still give the same on `example`; None if we do not know."""
    tracer = Tracer(tracer.worker, graph.flat(tracer.model), tracer.home, tracer.scratch)
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
    batch = bool(search.axes) and all(axis == 0 for _, axis, _, _ in moved)  # one that the file had fixed: its rows tell
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
        found = readings(tracer.model, node, (old, new), sizes, graph.label(node) == failing)
        if fresh := [r for r in found if _which(r) not in seen]:
            # layers are alike: what was right for one is likely right for the next
            return sorted(fresh, key=lambda r: r.get("sizes") not in [d.get("sizes") for d in done])
        if graph.label(node) == failing:
            break
    cut = [r for n in order for r in cut_at_example(tracer.model, n, old, new)] if failing is not None else []
    return [r for r in cut if _which(r) not in seen][:1]


def _which(rewrite: dict[str, Any]) -> tuple[str, ...]:
    """Return what a rewrite is about: a node's sizes are rewritten once, its constants each once."""
    return rewrite["node"], rewrite["do"], "" if rewrite["do"] == "new-shape" else str(rewrite.get("value"))


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
