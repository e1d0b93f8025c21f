"""Does the file run on these feeds? Each is made to fit, run, and a failure traced to its cause.

Where sizes of an example may be to blame, that is a suspicion: `repair/search/baked/` looks for a way to free them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from torchferry.check.running import causes, hazards, made_feeds
from torchferry.check.running.feeds import Change, Declared, FeedRefusal, Fitted, fit, misfits, shapes, turned
from torchferry.check.running.trace import Feed, Tracer
from torchferry.check.types import dtypes
from torchferry.records import Fault, Finding, Location
from torchferry.records.findings import (
    EmptyAxis,
    FeedFinding,
    FixedSize,
    IndexOutOfRange,
    MadeFeedFails,
    NoFeedMade,
    RunFailed,
    SizeSuspected,
)
from torchferry.worker import DEATHS, Worker


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

    @classmethod
    def of(cls, worker: Worker, key: str, home: Path, scratch: Path, model: onnx.ModelProto) -> Opened:
        """Return a model with what its graph declares."""
        stored = {t.name for t in model.graph.initializer}
        declared = tuple(_declared(i) for i in model.graph.input if i.name not in stored)
        return cls(worker, key, home, scratch, model, declared, tuple(i.name for i in model.graph.input if i.name in stored))

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
        return bool(self.outputs) and all(o is not None for o in self.outputs)


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
    return Ran(_distinct(found), tuple(outputs), tuple(item.feed for item in fitted))


def _distinct(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return one finding of each kind for each place, the last; one input may be wrong at several axes."""
    unlike = (id(f) if isinstance(f, SizeSuspected) else (type(f), f.location, getattr(f, "axis", None)) for f in found)
    return tuple(dict(zip(unlike, found, strict=True)).values())


def on_made(opened: Opened, keep: bool) -> Ran:
    """Return what running feeds made from the signature shows. One that runs is enough: the others may make no sense.

    Without `keep` its outputs stay in the worker: a large model may give gigabytes, and nobody looks at them.
    """
    if opened.model is None:
        return Ran((NoFeedMade("it is in onnxruntime's own format, which is not read here"),), ())
    last: tuple[Feed, Fault] | None = None
    for feed in made_feeds.feeds(opened.model, opened.declared):
        answer = opened.worker.run(opened.key, feed, keep=keep)
        if not isinstance(answer, Fault):
            return Ran((), (answer,), (feed,))
        if answer.type_name in DEATHS:
            return Ran((causes.died(answer),), (None,))
        last = last or (feed, answer)
    if last is None:
        return Ran((NoFeedMade(made_feeds.why_none(opened.declared)),), ())
    tracer = opened.tracer()
    assert tracer is not None
    cause = causes.explain(tracer, tracer.failure(*last), last[0])
    sizes = {n: tuple(a.shape) for n, a in last[0].items()}
    return Ran((MadeFeedFails(cause.failure.text, sizes, location=cause.location),), (None,))


def _feed_findings(item: Fitted, coerce: bool) -> list[FeedFinding]:
    changes = [c for c in item.changes if c.announced and not coerce]
    wrong: list[Change | FeedRefusal] = [*changes, *item.refusals]
    return [one.kind(one.words, location=Location(input_name=one.input)) for one in wrong]


def _silent(opened: Opened, feed: Feed, outputs: list[Any]) -> list[Finding]:
    """Return what is wrong with a run that gave no error."""
    found: list[Finding] = [*hazards.disagreeing(opened.declared, shapes(feed))]
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
        return [*found, SizeSuspected(feed, (causes.explain(tracer, failure, feed),), hidden=True)]
    return [*found, *hazards.nan(tracer, feed, outputs)]


def _why(opened: Opened, feed: Feed, fault: Fault, good: list[Feed]) -> Sequence[Finding]:
    """Return why a run failed."""
    if fault.type_name in DEATHS:  # once is enough: nothing is run again that crashes or hangs
        return [causes.died(fault)]
    fixed = [(d, axis) for d in opened.declared for axis in misfits(d, shapes(feed).get(d.name))]
    tracer = opened.tracer()
    if fixed:
        return _fixed_sizes(feed, fixed, suspected=tracer is not None)
    if disagree := [*hazards.disagreeing(opened.declared, shapes(feed))]:
        return disagree
    if tracer is None:
        return [causes.explain_without_graph(fault)]
    failure = tracer.failure(feed, fault)
    cause = causes.explain(tracer, failure, feed)
    # where it is one of the others, the values say why
    return [SizeSuspected(feed, (cause,), tuple(good)) if isinstance(cause, EmptyAxis | RunFailed) else cause]


def _fixed_sizes(feed: Feed, fixed: list[tuple[Declared, int]], suspected: bool) -> Sequence[Finding]:
    """Return the inputs whose declared size is not that of the feed; as a suspicion where the graph may be freed of it."""
    inverted = [d.name for d, _ in fixed if turned(d, feed[d.name].shape)]
    found = tuple(
        FixedSize(
            axis,
            declared=(spec.shape or ())[axis],
            got=int(feed[spec.name].shape[axis]),
            turned=spec.name in inverted,
            plan=None,
            location=Location(input_name=spec.name),
        )
        for spec, axis in fixed
    )
    return [SizeSuspected(feed, found)] if suspected and not inverted else found


def _declared(value: onnx.ValueInfoProto) -> Declared:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return Declared(value.name, _other_type(value.type), None)
    shape = (
        tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim)
        if kind.HasField("shape")
        else None
    )
    return Declared(value.name, f"tensor({dtypes.word(kind.elem_type)})", shape)


def _other_type(kind: onnx.TypeProto) -> str:
    """Return the word for a type that is no tensor; for a list of tensors as onnxruntime writes it."""
    if kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("tensor_type"):
        return f"seq(tensor({dtypes.word(kind.sequence_type.elem_type.tensor_type.elem_type)}))"
    return kind.WhichOneof("value") or "unknown"
