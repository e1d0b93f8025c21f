"""Rewrite the line that stopped a capture, capture again, and so on: all the lines that need it are found in one go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchferry import eager
from torchferry.capture import stopping_line, strategies, unchanged
from torchferry.capture.attempt import Outcome, attempt
from torchferry.capture.rewrites import sites
from torchferry.capture.rewrites.syntax_tree import CannotRewrite
from torchferry.capture.stage import answered
from torchferry.capture.stops import data_dependence
from torchferry.edits.capture import Prepare
from torchferry.records import Bound, Captured, Fault, Location, Step
from torchferry.records.findings import DataDependent
from torchferry.records.sites import Site
from torchferry.retrace import free_sizes

MOST_TRIES = 24
SECONDS = 60.0
Failed = tuple[Fault, Location | None]  # what stopped a capture, and the user's line


@dataclass(slots=True)
class _Stop:
    """A line that stopped a capture: the rewrites that may suit it, and the one in force."""

    fault: Fault
    options: list[Site]
    chosen: int = -1

    @property
    def site(self) -> Site | None:
        return self.options[self.chosen] if 0 <= self.chosen < len(self.options) else None


@dataclass(frozen=True, slots=True)
class Explored:
    """What stood in the way, in the order it was met; the rewrites that clear it; and what the stage answers with them."""

    findings: tuple[DataDependent, ...]
    sites: tuple[Site, ...] = ()
    answer: Step | None = None  # None: no program came out


def explore(bound: Bound, changes: Sequence[Prepare], first: Failed) -> Explored:
    """Return what stops the capture of a model, line by line, after what stopped it first, and the rewrites that clear it."""
    module = eager.fresh(bound.module)
    stops: dict[tuple[str, int], _Stop] = {}
    came: Failed | Step = first
    until = time.monotonic() + SECONDS
    for _ in range(MOST_TRIES):
        if isinstance(came, Step) or time.monotonic() > until or not _advance(module, stops, *came):
            break
        came = _try(module, bound, changes, _chosen(stops))
    cleared = isinstance(came, Step)
    findings = tuple(data_dependence(module, s.fault, Location(*place), s.options, cleared) for place, s in stops.items())
    return Explored(findings, tuple(_chosen(stops)), came) if isinstance(came, Step) else Explored(findings)


def _chosen(stops: dict[tuple[str, int], _Stop]) -> list[Site]:
    return [s.site for s in stops.values() if s.site]


def _try(module: Any, bound: Bound, changes: Sequence[Prepare], chosen: list[Site]) -> Failed | Step:
    """Return the stage's answer under these rewrites, which change nothing that comes out; else what stopped it, and where."""
    try:
        unchanged.check(bound, chosen)
        with sites.applied(module, chosen):
            outcome = attempt(eager.fresh(bound.module), bound.args, bound.dynamic_shapes, strategies.ordered()[:1])
        answer = outcome.attempts[0].fault or _of_use(outcome, bound, changes)
        if isinstance(answer, Step):
            return answer
        with sites.applied(module, chosen):
            return answer, stopping_line.locate(answer, module, bound)
    except CannotRewrite as error:
        return Fault.of(error), None


def _of_use(outcome: Outcome, bound: Bound, changes: Sequence[Prepare]) -> Step | Fault:
    """Return the stage's answer for a program; a fault where torch can capture it, but not take it apart for the next stage."""
    try:
        answer = answered(outcome, bound, changes)
        assert isinstance(answer.value, Captured)
        with free_sizes():
            answer.value.program.run_decompositions({})
    except Exception as error:  # torch may raise anything; what stops this try decides on the next
        return Fault.of(error)
    return answer


def _advance(module: Any, stops: dict[tuple[str, int], _Stop], fault: Fault, place: Location | None) -> bool:
    """Choose the next rewrite: one for the line that stopped this try, else another one for a line seen before."""
    key = (place.file, place.line) if place and place.file and place.line else None
    if key is not None and key not in stops and fault.type_name != CannotRewrite.__name__:
        stop = _Stop(fault, sites.candidates(module, *key))
        twin = _of_same_loop(stops, stop.options)
        if twin is not None:  # the loop was rewritten, and this is what stops its new form
            key = twin
        elif stop.options:
            stop.chosen = 0
            stops[key] = stop
            return True
        elif not stops:
            stops[key] = stop
            return False
    again = [stops[key]] if key in stops else []
    for stop in [*again, *reversed(list(stops.values()))]:
        if stop.chosen + 1 < len(stop.options):
            stop.chosen += 1
            return True
    return False


def _of_same_loop(stops: dict[tuple[str, int], _Stop], options: list[Site]) -> tuple[str, int] | None:
    """Return the line under which a loop is being rewritten already, if all that options have to offer is to rewrite it."""
    loops = {(o.file, sites.loop_of(o)) for o in options}
    if len(loops) != 1 or None in next(iter(loops)):
        return None
    return next((key for key, s in stops.items() if s.site and (s.site.file, sites.loop_of(s.site)) in loops), None)
