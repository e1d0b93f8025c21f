"""Sizes of an example that were baked into a graph: found by comparing a run at the example's sizes with one that fails.

At each node that holds a constant, the shapes of both runs tell which entries of the constant are an example's size:
those that stand for an axis which differs. The rewrites are planned here, tried out, shown to be right by
`check/proof/moved.py` or else marked as a guess, and carried out by the passes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.shapes import free_axes, rewrite
from torchferry.check.proof import moved, numbers, values
from torchferry.check.proof.mixing import grows_in_a_sum, window_takes_all
from torchferry.check.proof.moved_size import Moved
from torchferry.check.proof.runs import all_identical, close
from torchferry.check.reading import graph
from torchferry.check.running.trace import Feed, Tracer, Values
from torchferry.records import Fault
from torchferry.records.rewrites import EqualParts, MadeConstant, NewShape, SizeRewrite, Sizes
from torchferry.repair.search.baked.size_readings import cut_at_example, readings

MOST_TRIES = 400
MOST_OTHERS = 40  # tries for other readings beside one that is shown
LONGEST = 120.0  # seconds of trying, for large files; what is found by then and not shown is a guess, on a busy machine too


@dataclass(frozen=True, slots=True)
class FreeingPlan:
    """How to let sizes move: the axes to free, the rewrites in order, and why that is only a guess (empty: it was shown)."""

    axes: dict[str, dict[str, str]]
    rewrites: tuple[SizeRewrite, ...] = ()
    example: dict[str, Any] = field(default_factory=dict)  # the feed at the example's sizes
    guess: str = ""


@dataclass(frozen=True, slots=True)
class SizeReading:
    """A way to read the constants under which the file runs at the new sizes and gives what it gave at the old ones."""

    model: onnx.ModelProto
    rewrites: list[SizeRewrite]
    given: list[Any]  # at the new sizes


@dataclass(slots=True)
class FreeingSearch:
    """What stays the same while rewrites are tried, what was found so far, and how many more may be tried."""

    tracer: Tracer
    freed: onnx.ModelProto
    example: Feed
    feed: Feed
    axes: dict[str, dict[str, str]]
    before: list[tuple[Feed, list[Any]]]  # feeds at the example's sizes, and what the file gives for them
    readings: list[SizeReading] = field(default_factory=list)
    guess: FreeingPlan | None = None
    left: int = MOST_TRIES
    until: float = field(default_factory=lambda: time.monotonic() + LONGEST)

    @property
    def over(self) -> bool:
        return self.left < 0 or time.monotonic() > self.until


def plan(tracer: Tracer, example: Feed, feed: Feed, axes: dict[str, dict[str, str]]) -> FreeingPlan | None:
    """Return how to make the model run on `feed` too and still give the same on `example`; None if we do not know.

    The likeliest reading that is shown to be right is taken; where none is, the likeliest that runs, as a guess.
    """
    tracer = Tracer(tracer.worker, graph.flat(tracer.model), tracer.home, tracer.scratch)
    freed = onnx.ModelProto()
    freed.CopyFrom(tracer.model)
    free_axes(freed, axes)
    before = [(f, answer) for f in (example, values.drawn(example, 1)) if not isinstance(answer := tracer.run(freed, f), Fault)]
    if not before or before[0][0] is not example:
        return None
    search = FreeingSearch(tracer, freed, example, feed, axes, before)
    return _search(search, freed, []) or search.guess


def _search(search: FreeingSearch, model: onnx.ModelProto, done: list[SizeRewrite]) -> FreeingPlan | None:
    """Return a plan that begins with the rewrites done; where a constant can be read in several ways each is tried."""
    reading, options = _tried(search, model, done)
    if reading is not None:
        return _judged(search, reading)
    for option in options:
        search.left -= 1
        if search.over:
            return None
        if (found := _search(search, _rewritten(model, option), [*done, option])) is not None:
            return found
    return None


def _tried(
    search: FreeingSearch, model: onnx.ModelProto, done: list[SizeRewrite]
) -> tuple[SizeReading | None, list[SizeRewrite]]:
    """Return the reading that is complete, or the rewrites that come next; neither where this leads nowhere."""
    trial = Tracer(search.tracer.worker, model, search.tracer.home, search.tracer.scratch)
    answer = trial.run(trial.model, search.feed)
    failing = trial.failure(search.feed, answer).node if isinstance(answer, Fault) else None
    options = _next(trial, search.example, search.feed, failing, done)
    if options or isinstance(answer, Fault):
        return None, options
    same = all(all_identical(given, _outputs(trial.run(trial.model, feed))) for feed, given in search.before)
    return (SizeReading(trial.model, done, answer) if same else None), []


def _outputs(answer: list[Any] | Fault) -> list[Any] | None:
    return None if isinstance(answer, Fault) else answer


def _rewritten(model: onnx.ModelProto, option: SizeRewrite) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    rewrite(changed, [option])
    return changed


def _judged(search: FreeingSearch, reading: SizeReading) -> FreeingPlan | None:
    """Return the plan of a reading that is shown to be right; the first that is not is kept as a guess."""
    axes = _with_outputs(reading.model, search.axes, search.before[0][1], reading.given)

    doubts = {"mixed": lambda: _likelier_mix(search), "read": lambda: _other_reading(search, reading)}
    doubts |= {"number": lambda: _number_of_example(search, reading, False)}
    doubts |= {"any number": lambda: _number_of_example(search, reading, True)}
    mended = moved.Mended(search.tracer, reading.model, search.example, search.feed, reading.rewrites, search.axes, doubts)
    why = moved.why_not(mended, _moved_inputs(search.example, search.feed))
    search.readings.append(reading)
    found = FreeingPlan(axes, tuple(reading.rewrites), dict(search.example), why)
    if why:
        search.guess = search.guess or found
        return None
    return found


def _likelier_mix(search: FreeingSearch) -> str:
    """Return why an axis of size 1 may not be a batch: under a likelier reading some node sums, or chooses, along it."""
    for likelier in search.readings:
        trial = Tracer(search.tracer.worker, likelier.model, search.tracer.home, search.tracer.scratch)
        old, new = trial.values(search.example), trial.values(search.feed)
        if isinstance(old, Fault) or isinstance(new, Fault):
            return "another reading of the constants runs as well"
        node = grows_in_a_sum(trial.model, {**search.example, **old}, {**search.feed, **new})
        if node is not None:
            return f"read in another way, `{node}` mixes what stands along it"
    return ""


def _other_reading(search: FreeingSearch, reading: SizeReading) -> str:
    """Return which constant can be read in another way too, with other results: then nothing shows which one is meant."""
    for chosen, other in _others(search, reading):
        if not _all_close(other.given, reading.given):
            return f"the constant of `{chosen}` can be read in another way, which gives something else"
    old_split = any(n.op_type == "Split" and "split" in graph.attributes(n) for n in search.tracer.model.graph.node)
    if old_split and any(isinstance(r, EqualParts) for r in reading.rewrites):
        return "the parts of a Split may be meant to keep their sizes"
    return "" if not search.over else "there was no time to try other readings of the constants"


def _others(search: FreeingSearch, reading: SizeReading) -> Iterator[tuple[str, SizeReading]]:
    """Yield the complete readings that differ first in one constant, and the node whose it is."""
    search.left = min(search.left, MOST_OTHERS)
    for index, chosen in enumerate(reading.rewrites):
        model, done = search.freed, reading.rewrites[:index]
        for earlier in done:
            model = _rewritten(model, earlier)
        _, options = _tried(search, model, done)
        for option in (o for o in options if o != chosen):
            other = _first_complete(search, _rewritten(model, option), [*done, option])
            if other is not None:
                yield chosen.node, other


def _first_complete(search: FreeingSearch, model: onnx.ModelProto, done: list[SizeRewrite]) -> SizeReading | None:
    """Return the likeliest complete reading that begins with the rewrites done."""
    while True:
        search.left -= 1
        reading, options = _tried(search, model, done)
        if reading is not None or not options or search.over:
            return reading
        model, done = _rewritten(model, options[0]), [*done, options[0]]


def _all_close(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(close(a, b) for a, b in zip(first, second, strict=True))


def _number_of_example(search: FreeingSearch, reading: SizeReading, strictly: bool) -> str:
    """Return which node goes by the example's size, as far as its numbers tell."""
    lengths = {was for _, axis, was, _ in _moved_inputs(search.example, search.feed) if axis != 0 and was > 1}
    if node := numbers.of_size(reading.model, lengths):
        return f"`{node}` reckons with a number that may be the old size"
    if strictly and (node := numbers.unexplained(reading.model)):
        return f"`{node}` reckons with a number that may come from the old size: nothing else in the file explains it"
    trial = Tracer(search.tracer.worker, reading.model, search.tracer.home, search.tracer.scratch)
    old, new = trial.values(search.example), trial.values(search.feed)
    if isinstance(old, Fault) or isinstance(new, Fault):
        return "its inner values cannot be looked at"
    whole = window_takes_all(reading.model, {**search.example, **old}, {**search.feed, **new})
    return f"the window of `{whole}` took in all there was" if whole else ""


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


def _next(tracer: Tracer, example: Feed, feed: Feed, failing: str | None, done: list[SizeRewrite]) -> list[SizeRewrite]:
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
            return sorted(fresh, key=lambda r: _sizes(r) not in [_sizes(d) for d in done])
        if graph.label(node) == failing:
            break
    cut = [r for n in order for r in cut_at_example(tracer.model, n, old, new)] if failing is not None else []
    return [r for r in cut if _which(r) not in seen][:1]


def _which(rewrite: SizeRewrite) -> tuple[str, type[SizeRewrite], str]:
    """Return what a rewrite is about: a node's sizes are rewritten once, its constants each once."""
    return rewrite.node, type(rewrite), rewrite.value if isinstance(rewrite, MadeConstant) else ""


def _sizes(rewrite: SizeRewrite) -> Sizes | None:
    """Return the sizes that a rewrite speaks of."""
    match rewrite:
        case NewShape(sizes=sizes):
            return sizes
        case MadeConstant(pattern=pattern):
            return pattern.sizes
    return None


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
