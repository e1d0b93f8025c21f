"""The stage itself: take the edits, capture in the most faithful way, read the guards; or say what stopped it, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from torchferry import eager
from torchferry.capture import guards, piecewise, prepare, stopping_line, strategies, survey, unchanged
from torchferry.capture.attempt import Outcome, attempt
from torchferry.capture.rewrites.sites import applied, candidates
from torchferry.capture.rewrites.syntax_tree import CannotRewrite
from torchferry.capture.stops import stop
from torchferry.edits.capture import Piecewise, Prepare, Rewrite
from torchferry.foreign.torch_modules import parameters_of
from torchferry.records import Bound, Captured, Case, Fault, Step
from torchferry.records.findings import GuardNarrows


def capture(case: Case) -> Step:
    """Return the model as an ExportedProgram, or the fault that stopped the most faithful strategy, and its line.

    Whether lines can be rewritten, or another strategy gets further, is found out by `repair/search/`.
    """
    with ready(case) as bound:
        return _captured(case, bound)


@contextmanager
def ready(case: Case) -> Iterator[Bound]:
    """Give the call with a copy of the model that may be changed, prepared as the job's edits say."""
    bound = case.answer(Bound)
    with eager.one_at_a_time:  # rewrites stand in the model's own functions for as long as a capture takes
        copy = eager.fresh(bound.module)
        # a model that cannot be copied is put back in order afterwards
        with eager.untouched(bound.module) if copy is bound.module else nullcontext():
            prepared = prepare.apply(copy, bound.args, case.job.edits_for(Prepare))
            yield replace(bound, module=without_gradients(prepared))


def _captured(case: Case, bound: Bound) -> Step:
    """Return the stage's answer for a model that may be changed."""
    rewrites = [site for edit in case.job.edits_for(Rewrite) for site in edit.sites]
    try:
        unchanged.check(bound, rewrites)
    except CannotRewrite as error:
        return Step("capture", fault=Fault.of(error))
    module = eager.fresh(bound.module)
    with applied(module, rewrites):
        pieces = _in_pieces(case, bound)
        outcome = attempt(module, bound.args, bound.dynamic_shapes, (pieces or strategies.ordered()[0],))
        if outcome.program is None and not pieces:
            return _stopped(outcome, bound)
    if outcome.program is None:  # what was asked for cannot be had; nothing else will do
        return Step("capture", fault=outcome.attempts[0].fault, attempts=outcome.attempts)
    return answered(outcome, bound, case.job.edits_for(Prepare))


def answered(outcome: Outcome, bound: Bound, changes: Iterable[Prepare]) -> Step:
    """Return the stage's answer for a program that was captured: with its guards, and revised as the edits say."""
    found = guards.read(outcome.program, bound)
    narrow = [_with_sites(f, bound.module) for f in guards.narrowing(found, bound.signature)]
    program = prepare.revise(outcome.program, changes)
    value = Captured(program, outcome.strategy, outcome.attempts, found)
    seen = (*outcome.notes, *survey.of_module(bound), *survey.of_program(program, bound))
    return Step("capture", value, findings=(*narrow, *seen), attempts=outcome.attempts)


def _stopped(outcome: Outcome, bound: Bound) -> Step:
    """Return the fault that stopped a capture, and the user's line."""
    fault = outcome.attempts[0].fault
    assert fault is not None
    place = stopping_line.locate(fault, eager.fresh(bound.module), bound)
    stopped = stop(fault, place, tuple(stopping_line.pinned_dims(fault, bound)))
    findings = (*outcome.notes, *survey.of_module(bound), stopped)
    return Step("capture", fault=fault, findings=findings, attempts=outcome.attempts)


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
