"""Does the file run on these feeds? Each is made to fit, run, and a failure traced to its cause and, if known, its cure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from torchferry.check.baked import guesses, search
from torchferry.check.reading.expressions import evaluate
from torchferry.check.running import causes, hazards, made_feeds
from torchferry.check.running.feeds import Change, Declared, Fitted, Refusal, fit, misfits
from torchferry.check.running.trace import Failure, Feed, Tracer
from torchferry.records import Fault, Finding, Location
from torchferry.records.findings import (
    BakedSize,
    EmptyAxis,
    FeedFinding,
    FixedSize,
    IndexOutOfRange,
    MadeFeedFails,
    MovingSizes,
    NodeFailed,
    NoFeedMade,
    RunFailed,
)
from torchferry.worker import Worker

MOST_GUESSES = 40
DEATHS = ("TimeLimit", "ProcessDied")


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that opens: the session's key in the worker, the graph (None: not readable), and what it declares."""

    worker: Worker
    key: str
    home: Path
    scratch: Path
    model: onnx.ModelProto | None
    declared: tuple[Declared, ...]
    optional: tuple[str, ...] = ()

    def tracer(self) -> Tracer | None:
        return None if self.model is None else Tracer(self.worker, self.model, self.home, self.scratch)


@dataclass(frozen=True, slots=True)
class Ran:
    """What the feeds showed: findings, and the outputs of each feed that ran (None where it did not)."""

    findings: tuple[Finding, ...]
    outputs: tuple[Any, ...]
    feeds: tuple[Feed, ...] = ()  # as they were run

    @property
    def all_ran(self) -> bool:
        return all(o is not None for o in self.outputs)


def on_given(opened: Opened, feeds: Sequence[Feed], coerce: bool) -> Ran:
    """Return what running the user's feeds shows; with `coerce` what is changed to make them fit is no finding."""
    fitted = [fit(opened.declared, feed, opened.optional) for feed in feeds]
    found: list[Finding] = [f for item in fitted for f in _feed_findings(item, coerce)]
    outputs: list[Any] = [None] * len(feeds)
    failed: list[tuple[int, Fault]] = []
    for index, item in enumerate(fitted):
        if item.refusals:
            continue
        answer = opened.worker.run(opened.key, item.feed)
        if isinstance(answer, Fault):
            failed.append((index, answer))
        else:
            outputs[index] = answer
            found += _silent(opened, item.feed, answer)
    good: list[Feed] = [item.feed for item, output in zip(fitted, outputs, strict=True) if output is not None]
    for index, fault in failed:
        found += _why(opened, fitted[index].feed, fault, good)
    # one input may be wrong at several axes
    unique = list({(type(f), str(f.location), getattr(f, "axis", None)): f for f in found}.values())
    return Ran(tuple(unique), tuple(outputs), tuple(item.feed for item in fitted))


def on_made(opened: Opened, keep: bool) -> Ran:
    """Return what running feeds made from the signature shows. One that runs is enough: the others may make no sense.

    Without `keep` its outputs stay in the worker: a large model may give gigabytes, and nobody looks at them.
    """
    if opened.model is None:
        return Ran((), ())
    last: tuple[Feed, Fault] | None = None
    for feed in made_feeds.feeds(opened.model, opened.declared):
        answer = opened.worker.run(opened.key, feed, keep=keep)
        if not isinstance(answer, Fault):
            return Ran((), (answer,), (feed,))
        if answer.type_name in DEATHS:
            return Ran((causes.died(answer),), (None,))
        last = last or (feed, answer)
    if last is None:
        return Ran((NoFeedMade(),), ())
    tracer = opened.tracer()
    assert tracer is not None
    cause = causes.explain(tracer, tracer.failure(*last), last[0])
    sizes = {n: tuple(a.shape) for n, a in last[0].items()}
    return Ran((MadeFeedFails(cause.failure.text, sizes, location=cause.location),), (None,))


def _feed_findings(item: Fitted, coerce: bool) -> list[FeedFinding]:
    changes = [c for c in item.changes if c.announced and not coerce]
    wrong: list[Change | Refusal] = [*changes, *item.refusals]
    return [one.kind(one.words, location=Location(input_name=one.input)) for one in wrong]


def _silent(opened: Opened, feed: Feed, outputs: list[Any]) -> list[Finding]:
    """Return what is wrong with a run that gave no error."""
    found: list[Finding] = [*hazards.disagreeing(opened.declared, feed)]
    tracer = opened.tracer()
    if tracer is None:
        return found
    if hazards.may_be_clamped(tracer.model):
        answer = tracer.run(tracer.model, feed)  # optimisations off: the lookup is a lookup again
        if isinstance(answer, Fault):
            cause = causes.explain(tracer, tracer.failure(feed, answer), feed)
            return [*found, replace(cause, hidden=True) if isinstance(cause, IndexOutOfRange) else cause]
    failure = hazards.resized_batch(tracer, opened.declared, feed)
    if failure is not None:
        cause = causes.explain(tracer, failure, feed)
        size = _baked(opened, tracer, failure, cause, feed, [])
        return [*found, *([replace(size, hidden=True)] if size is not None else [])]
    return [*found, *hazards.nan(tracer, feed, outputs)]


def _why(opened: Opened, feed: Feed, fault: Fault, good: list[Feed]) -> Sequence[Finding]:
    """Return why a run failed."""
    if fault.type_name in DEATHS:  # once is enough: nothing is run again that crashes or hangs
        return [causes.died(fault)]
    fixed = [(d, axis) for d in opened.declared for axis in misfits(d, feed.get(d.name))]
    tracer = opened.tracer()
    if fixed:
        return _fixed_sizes(opened, tracer, feed, fixed)
    if disagree := hazards.disagreeing(opened.declared, feed):
        return disagree
    if tracer is None:
        return [causes.explain_without_graph(fault)]
    failure = tracer.failure(feed, fault)
    cause = causes.explain(tracer, failure, feed)
    if not isinstance(cause, EmptyAxis | RunFailed):  # the values say why
        return [cause]
    return [_baked(opened, tracer, failure, cause, feed, good) or cause]


def _baked(opened: Opened, tracer: Tracer, failure: Failure, cause: NodeFailed, feed: Feed, good: list[Feed]) -> BakedSize | None:
    """Return the failure as one of a size that was baked in, where there is a plan to free it."""
    plan = _plan(opened, tracer, failure, feed, good)
    if plan is None or cause.location is None:
        return None
    return BakedSize(cause.failure, _moving(plan, feed), location=cause.location)


def _fixed_sizes(opened: Opened, tracer: Tracer | None, feed: Feed, fixed: list[tuple[Declared, int]]) -> list[FixedSize]:
    """Return the inputs whose declared size is not that of the feed; with a plan where the graph can be freed of it."""
    axes: dict[str, dict[str, str]] = {}
    for spec, axis in fixed:
        axes.setdefault(spec.name, {})[str(axis)] = _axis_name(spec, axis, feed)
    example = {n: _resized(a, next((d for d in opened.declared if d.name == n), None), {}) for n, a in feed.items()}
    turned = [d.name for d in opened.declared if d.name in axes and _is_turned(d, feed[d.name])]
    plan = search.plan(tracer, example, feed, axes) if tracer is not None and not turned else None
    moving = _moving(plan, feed) if plan else None
    return [
        FixedSize(
            axis,
            declared=(spec.shape or ())[axis],
            got=int(feed[spec.name].shape[axis]),
            turned=spec.name in turned,
            plan=moving,
            location=Location(input_name=spec.name),
        )
        for spec, axis in fixed
    ]


def _is_turned(spec: Declared, array: np.ndarray) -> bool:
    """Whether a fixed size that is not fed stands at another axis, where it is not declared: an image with its channels last."""
    lost = [spec.shape[i] for i in misfits(spec, array) if spec.shape and (i or spec.shape[i] != 1)]  # a batch of 1 is no sign
    return any(got in lost and want != got for want, got in zip(spec.shape or (), array.shape, strict=True))


def _axis_name(spec: Declared, axis: int, feed: Feed) -> str:
    """Name a freed axis: all inputs whose first axis is freed share the batch."""
    return "batch" if axis == 0 else f"{spec.name}_{axis}"


def _plan(opened: Opened, tracer: Tracer, failure: Failure, feed: Feed, good: list[Feed]) -> search.FreeingPlan | None:
    """Return a plan found from a feed that runs: one of the user's, or one of the sizes that constants speak of.

    The first that is shown to be right; where none is, the first of all, as a guess.
    """
    plans = [p for g in good if _sizes(g) != _sizes(feed) and (p := search.plan(tracer, g, feed, {})) is not None]
    sizes = _symbols(opened.declared, feed)
    if plans or not sizes:
        return next((p for p in plans if not p.guess), plans[0] if plans else None)
    guessed: search.FreeingPlan | None = None
    full = {s: v or 2 for s, v in sizes.items()}
    likely = ([full] if full != sizes else []) + guesses.example_guesses(failure, tracer.model, sizes)
    for guess in likely[:MOST_GUESSES]:
        example = {n: _resized(a, next((d for d in opened.declared if d.name == n), None), guess) for n, a in feed.items()}
        if isinstance(opened.worker.run(opened.key, example), Fault):
            continue
        if (plan := search.plan(tracer, example, feed, {})) is not None:
            if not plan.guess:
                return plan
            guessed = guessed or plan
    return guessed


def _sizes(feed: Feed) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(array) for name, array in feed.items()}


def _symbols(declared: Sequence[Declared], feed: Feed) -> dict[str, int]:
    found: dict[str, int] = {}
    for spec in declared:
        array = feed.get(spec.name)
        for axis, size in enumerate(spec.shape or ()):
            if (
                isinstance(size, str)
                and size.isidentifier()
                and isinstance(array, np.ndarray)
                and array.ndim == len(spec.shape or ())
            ):
                found.setdefault(size, array.shape[axis])
    return found


def _resized(array: Any, spec: Declared | None, sizes: Mapping[str, int]) -> Any:
    """Return an array cut or repeated to the sizes that are declared, or assigned to their names."""
    if spec is None or not isinstance(array, np.ndarray) or array.ndim != len(spec.shape or ()):
        return array
    for axis, size in enumerate(spec.shape or ()):
        wanted = (
            size if isinstance(size, int) and size >= 0 else evaluate(size, sizes) if isinstance(size, str) and sizes else None
        )
        if wanted is not None and wanted != array.shape[axis]:
            if array.shape[axis]:
                array = np.take(array, np.arange(wanted) % array.shape[axis], axis=axis)
            else:
                array = np.ones((*array.shape[:axis], wanted, *array.shape[axis + 1 :]), array.dtype)
    return np.ascontiguousarray(array) if array.ndim else array  # numpy gives a scalar an axis


def _moving(plan: search.FreeingPlan, feed: Feed) -> MovingSizes:
    example, fed = ({n: a.shape for n, a in f.items() if isinstance(a, np.ndarray)} for f in (plan.example, feed))
    return MovingSizes(plan.axes, plan.rewrites, plan.guess, example, fed)
