"""Ways past what stopped a capture: lines to rewrite, then strategies that keep less; else what more stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchferry import eager
from torchferry.capture import further_obstacles, stopping_line, strategies
from torchferry.capture.attempt import attempt
from torchferry.capture.rewrites.sites import applied
from torchferry.capture.stage import answered, ready
from torchferry.edits.capture import Prepare, Rewrite
from torchferry.records import Captured, Case, Finding, Remedy, Step
from torchferry.records.findings import CaptureStopped, DataDependent, RewritesFound
from torchferry.records.sites import Site
from torchferry.repair.search.rewrites import Explored, explore


def searched(case: Case, step: Step) -> Step:
    """Return the answer of a capture that stopped, with what was found; that of another strategy where one gets through."""
    stopped = next((f for f in step.findings if isinstance(f, CaptureStopped)), None)
    if step.fault is None or stopped is None:  # what the edits ask for cannot be had: nothing else will do
        return step
    changes = case.job.edits_for(Prepare)
    rewrites = [site for edit in case.job.edits_for(Rewrite) for site in edit.sites]
    with ready(case) as bound:
        module = eager.fresh(bound.module)
        with applied(module, rewrites):
            by_values = stopping_line.data_dependent(step.fault) or stopping_line.pinned(step.fault)
            explored = explore(bound, changes, (step.fault, stopped.location)) if by_values else Explored(())
            if explored.answer is not None:
                return _cleared(step, explored, explored.answer, rewrites)
            others = attempt(module, bound.args, bound.dynamic_shapes, strategies.ordered()[1:])
        if others.program is not None:
            return _joined(step, answered(others, bound, changes))
        met = (*step.findings, *others.notes, *explored.findings)
        findings = (*met, *_elsewhere(further_obstacles.problems(bound), met))
    return replace(step, findings=findings, attempts=(*step.attempts, *others.attempts))


def _cleared(step: Step, explored: Explored, answer: Step, rewrites: Sequence[Site]) -> Step:
    """Return the answer with the rewrites that were found, and what the stage answers with them, so that nobody asks again."""
    found = (RewritesFound(explored.sites),) if not set(explored.sites) <= set(rewrites) else ()
    # with rewrites in force already, those in the same function are made together: that is another program
    answer = replace(answer, seconds=sum(a.seconds for a in answer.attempts))
    remedy = Remedy(Rewrite(explored.sites), answer) if not rewrites else None
    return replace(step, findings=(*step.findings, *explored.findings, *found), remedy=remedy)


def _joined(step: Step, later: Step) -> Step:
    """Return the answer of a later strategy, with the attempts before it and what was noticed in them."""
    assert isinstance(later.value, Captured)
    attempts = (*step.attempts, *later.attempts)
    before = [f for f in step.findings if not isinstance(f, CaptureStopped) and f not in later.findings]
    return replace(later, value=replace(later.value, attempts=attempts), findings=(*later.findings, *before), attempts=attempts)


def _elsewhere(more: Sequence[Finding], met: Sequence[Finding]) -> list[Finding]:
    """Return the findings on lines that none of those met before is about."""
    lines = [f.location for f in met if isinstance(f, CaptureStopped | DataDependent) and f.location]
    known = {(place.file, place.line) for place in lines}
    return [f for f in more if f.location and (f.location.file, f.location.line) not in known]
