"""The stage itself: take the edits, try the strategies, read the guards, and look into what stopped a capture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from torchferry import eager
from torchferry.capture import further_obstacles, guards, piecewise, prepare, strategies, survey, unchanged, where
from torchferry.capture.attempt import Outcome, attempt, once
from torchferry.capture.rewrites.explore import Capture, Explored, Failed, explore, stop
from torchferry.capture.rewrites.sites import applied, candidates
from torchferry.capture.rewrites.syntax_tree import CannotRewrite
from torchferry.edits.capture import Piecewise, Prepare, Rewrite
from torchferry.foreign.torch_modules import parameters_of
from torchferry.records import Bound, Captured, Case, Fault, Finding, Location, Step
from torchferry.records.findings import CaptureStopped, DataDependent, GuardNarrows, RewritesFound
from torchferry.records.sites import Site
from torchferry.retrace import free_sizes


def capture(case: Case) -> Step:
    """Return the model as an ExportedProgram, or the fault that stopped the most faithful strategy."""
    bound: Bound = case.value("inputs")
    with eager.one_at_a_time:  # the rewrites below stand in the model's own functions for as long as the capture takes
        copy = eager.fresh(bound.module)
        if copy is not bound.module:
            return _captured(case, replace(bound, module=copy))
        with eager.untouched(bound.module):  # a model that cannot be copied is put back in order afterwards
            return _captured(case, bound)


def _captured(case: Case, bound: Bound) -> Step:
    """Return the stage's answer for a model that may be changed."""
    changes = case.job.edits_for(Prepare)
    bound = replace(bound, module=without_gradients(prepare.apply(bound.module, bound.args, changes)))
    module = eager.fresh(bound.module)
    rewrites = tuple(site for edit in case.job.edits_for(Rewrite) for site in edit.sites)
    first, *others = strategies.ordered()
    try:
        unchanged.check(bound, rewrites)
    except CannotRewrite as error:
        return Step("capture", fault=Fault.of(error))
    with applied(module, rewrites):
        pieces = _in_pieces(case, bound)
        outcome = attempt(module, bound.args, bound.dynamic_shapes, (pieces or first,))
        if outcome.program is None and pieces:  # what was asked for cannot be had; nothing else will do
            return Step("capture", fault=outcome.attempts[0].fault, attempts=outcome.attempts)
        failed = _failed(outcome, bound)
        explored = _explored(failed, bound) if failed else None
        if outcome.program is None and not (explored and explored.cleared):
            outcome = outcome.then(attempt(module, bound.args, bound.dynamic_shapes, tuple(others)))
    if failed is not None and outcome.program is None:
        return _stopped(outcome, failed, bound, rewrites, explored)
    found = guards.read(outcome.program, bound)
    narrow = [_with_sites(f, module) for f in guards.narrowing(found, bound.signature)]
    program = prepare.revise(outcome.program, changes)
    value = Captured(program, outcome.strategy, outcome.attempts, found)
    seen = (*outcome.notes, *survey.of_module(bound), *survey.of_program(program, bound))
    return Step("capture", value, findings=(*narrow, *seen), attempts=outcome.attempts)


def without_gradients(module: Any) -> Any:
    """Return the copy with parameters that ask for no gradients, their memory shared: control flow would differentiate them."""
    known: dict[int, Any] = {}
    for part in module.modules():
        for name, parameter in list(parameters_of(part).items()):
            if type(parameter) is torch.nn.Parameter and parameter.requires_grad:
                frozen = known.setdefault(id(parameter), torch.nn.Parameter(parameter.detach(), requires_grad=False))
                parameters_of(part)[name] = frozen
    return module


def _in_pieces(case: Case, bound: Bound) -> strategies.Strategy | None:
    """Return the way to capture a model whose program was found to differ with the sizes."""
    texts = tuple(edit.guard for edit in case.job.edits_for(Piecewise))
    if not texts:
        return None
    return strategies.Strategy("piecewise", lambda module, args, shapes: piecewise.joined(module, bound, texts))


def _with_sites(narrow: GuardNarrows, module: Any) -> GuardNarrows:
    """Return a narrowing guard with the rewrites that may keep both sides of its line in the graph."""
    place = narrow.location
    options = candidates(module, place.file, place.line) if place and place.file and place.line else []
    return replace(narrow, sites=tuple(s for s in options if s.kind in ("branch", "ternary", "for", "exit")))


def _failed(outcome: Outcome, bound: Bound) -> Failed | None:
    """Return what stopped the first strategy, and the user's line; None when nothing did."""
    fault = outcome.attempts[0].fault
    return None if fault is None else (fault, where.locate(fault, eager.fresh(bound.module), bound))


def _explored(failed: Failed, bound: Bound) -> Explored | None:
    """Return what a search for lines to rewrite came to, where values or sizes stopped the capture."""
    if not (where.data_dependent(failed[0]) or where.pinned(failed[0])):
        return None
    strategy = strategies.ordered()[0]
    module = eager.fresh(bound.module)

    def run() -> Any:
        program = prepare.revise(once(strategy, eager.fresh(bound.module), bound.args, bound.dynamic_shapes), ())
        # a rewrite that torch can capture but not take apart is of no use to the next stage
        with free_sizes():
            return program.run_decompositions({})

    def check(chosen: list[Site]) -> None:
        unchanged.check(bound, chosen)

    def place(fault: Fault) -> Location | None:
        return where.locate(fault, module, bound)

    return explore(module, Capture(run, check), place, failed)


def _stopped(outcome: Outcome, failed: Failed, bound: Bound, rewrites: tuple[Site, ...], explored: Explored | None) -> Step:
    """Return the fault, with all that stands in the way of a capture."""
    fault, place = failed
    stopped = stop(fault, place, tuple(where.pinned_dims(fault, bound)))
    findings: list[Finding] = [*outcome.notes, *survey.of_module(bound), stopped]
    if explored is not None:
        findings += explored.findings
    if explored is None or not explored.cleared:
        findings = _with_more(findings, further_obstacles.problems(bound))
    if explored is not None and explored.cleared and not set(explored.sites) <= set(rewrites):
        findings.append(RewritesFound(explored.sites))
    return Step("capture", fault=fault, findings=tuple(findings), attempts=outcome.attempts)


def _with_more(findings: list[Finding], more: tuple[Finding, ...]) -> list[Finding]:
    """Return the findings with those on lines that none of them is about."""
    lines = [f.location for f in findings if isinstance(f, CaptureStopped | DataDependent) and f.location]
    known = {(place.file, place.line) for place in lines}
    return [*findings, *(f for f in more if f.location and (f.location.file, f.location.line) not in known)]
