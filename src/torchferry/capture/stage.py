"""The stage itself: take the edits, try the strategies, read the guards, and look into what stopped a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchferry import eager
from torchferry.capture import guards, strategies, where
from torchferry.capture.attempt import Outcome, attempt, once
from torchferry.capture.rewrites import sites_of
from torchferry.capture.rewrites.explore import Explored, explore
from torchferry.capture.rewrites.sites import Site, applied
from torchferry.records import Bound, Captured, Case, Fault, Finding, Location, Step


def capture(case: Case) -> Step:
    """Return the model as an ExportedProgram, or the fault that stopped the most faithful strategy."""
    bound: Bound = case.value("inputs")
    module = eager.fresh(bound.module)
    rewrites = tuple(sites_of(case.job.edits_for("capture")))
    with applied(module, rewrites):
        outcome = attempt(module, bound.args, bound.dynamic_shapes)
    if outcome.program is None:
        return _stopped(outcome, bound, rewrites)
    found = guards.read(outcome.program, bound)
    value = Captured(outcome.program, outcome.strategy, outcome.attempts, found)
    return Step("capture", value, findings=tuple(guards.narrowing(found, bound.signature)), attempts=outcome.attempts)


def _stopped(outcome: Outcome, bound: Bound, rewrites: tuple[Site, ...]) -> Step:
    """Return the fault, with all that stands in the way of a capture."""
    fault = outcome.attempts[0].fault
    assert fault is not None
    found = _explored(bound)
    findings = (*found.findings, *_rewritable(found, rewrites))
    place = where.locate(fault, eager.fresh(bound.module), bound)
    return Step("capture", fault=fault, findings=(*findings, Finding("stopped", place, {"error": fault.type_name})), attempts=outcome.attempts)


def _explored(bound: Bound) -> Explored:
    strategy = strategies.Strategy("non-strict", strategies.non_strict)
    module = eager.fresh(bound.module)

    def run() -> Any:
        return once(strategy, eager.fresh(bound.module), bound.args, bound.dynamic_shapes)

    def place(fault: Fault) -> Location | None:
        return where.locate(fault, module, bound)

    locate: Callable[[Fault], Location | None] = place
    return explore(module, run, locate)


def _rewritable(found: Explored, already: tuple[Site, ...]) -> tuple[Finding, ...]:
    if not found.cleared or set(found.sites) <= set(already):
        return ()
    return (Finding("rewrites", None, {"sites": [s.facts() for s in found.sites]}),)
