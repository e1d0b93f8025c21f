"""Feeds that may fail for sizes of an example: a suspicion of the check stage becomes a plan to free them, or is dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import source_line
from torchferry.check.reading.expressions import evaluate
from torchferry.check.reading.incoming import child
from torchferry.check.running.feeds import Declared
from torchferry.check.running.run import Opened
from torchferry.check.running.trace import Feed, Tracer
from torchferry.records import Case, Checked, Fault, Finding, Step
from torchferry.records.findings import BakedSize, FixedSize, MovingSizes, NodeFailed, SizeSuspected
from torchferry.repair.search.baked import freeing, guesses
from torchferry.repair.search.baked.freeing import FreeingPlan

MOST_GUESSES = 40


def searched(case: Case, step: Step) -> Step:
    """Return the answer about a file with each suspicion settled: sizes that can be freed, or what is said where none can."""
    assert isinstance(step.value, Checked)
    assert step.value.path is not None  # it is a file from elsewhere
    path, folder = step.value.path, case.job.workspace
    model = onnx.load(str(path), load_external_data=False)
    with child(case.job) as worker:
        key = worker.open(path)
        opened = Opened.of(worker, key, path.parent, folder, model) if not isinstance(key, Fault) and folder else None
        found = [f for finding in step.findings for f in _settled(opened, finding)]
    located = source_line.located(model, found)
    # several feeds may fail at one place: the last of them says it
    places = ((type(f), f.location, getattr(f, "axis", 0)) if isinstance(f, FixedSize | NodeFailed) else id(f) for f in located)
    return replace(step, findings=tuple(dict(zip(places, located, strict=True)).values()))


def _settled(opened: Opened | None, finding: Finding) -> Iterator[Finding]:
    """Yield what a finding comes to: itself, unless it is a suspicion."""
    if not isinstance(finding, SizeSuspected):
        yield finding
        return
    plan = _plan(opened, opened.tracer(), finding) if opened is not None else None
    for said in finding.said:
        if plan is None:
            yield from () if finding.hidden else (said,)
        elif isinstance(said, FixedSize):
            yield replace(said, plan=_moving(plan, finding.feed))
        else:
            yield BakedSize(said.failure, _moving(plan, finding.feed), finding.hidden, location=said.location)


def _plan(opened: Opened, tracer: Tracer | None, suspect: SizeSuspected) -> FreeingPlan | None:
    """Return how to free the sizes that a feed may fail for."""
    fixed = [f for f in suspect.said if isinstance(f, FixedSize)]
    if tracer is None:
        return None
    if not fixed:
        return _from_other_feeds(opened, tracer, suspect)
    axes: dict[str, dict[str, str]] = {}
    for finding in fixed:  # all inputs whose first axis is freed share the batch
        name = str(finding.location.input_name) if finding.location else ""
        axes.setdefault(name, {})[str(finding.axis)] = f"{name}_{finding.axis}" if finding.axis else "batch"
    return freeing.plan(tracer, _at(opened.declared, suspect.feed, {}), suspect.feed, axes)


def _from_other_feeds(opened: Opened, tracer: Tracer, suspect: SizeSuspected) -> FreeingPlan | None:
    """Return a plan found from a feed that runs: one of the user's, or one of the sizes that constants speak of.

    The first that is shown to be right; where none is, the first of all, as a guess.
    """
    feed, good = suspect.feed, [g for g in suspect.good if _sizes(g) != _sizes(suspect.feed)]
    plans = [p for g in good if (p := freeing.plan(tracer, g, feed, {})) is not None]
    sizes = _symbols(opened.declared, feed)
    if plans or not sizes:
        return next((p for p in plans if not p.guess), plans[0] if plans else None)
    guessed: FreeingPlan | None = None
    full = {s: v or 2 for s, v in sizes.items()}
    node = next((f.location.onnx_node or "" for f in suspect.said if f.location), "")
    likely = ([full] if full != sizes else []) + guesses.example_guesses(node, tracer.model, sizes)
    for guess in likely[:MOST_GUESSES]:
        example = _at(opened.declared, feed, guess)
        if isinstance(opened.worker.run(opened.key, example), Fault):
            continue
        if (plan := freeing.plan(tracer, example, feed, {})) is not None:
            if not plan.guess:
                return plan
            guessed = guessed or plan
    return guessed


def _at(declared: Sequence[Declared], feed: Feed, sizes: Mapping[str, int]) -> Feed:
    """Return a feed at the sizes that are declared, or assigned to their names."""
    return {n: _resized(a, next((d for d in declared if d.name == n), None), sizes) for n, a in feed.items()}


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


def _moving(plan: FreeingPlan, feed: Feed) -> MovingSizes:
    example, fed = ({n: a.shape for n, a in f.items() if isinstance(a, np.ndarray)} for f in (plan.example, feed))
    return MovingSizes(plan.axes, plan.rewrites, plan.guess, example, fed)
