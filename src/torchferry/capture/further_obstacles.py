"""What else stands in the way of a capture: each line that stops it is given its eager value, and the capture goes on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from torchferry import eager
from torchferry.capture import source_map, stopping_line, strategies
from torchferry.capture.attempt import once
from torchferry.capture.rewrites import eager_values, sites
from torchferry.capture.rewrites.syntax_tree import CannotRewrite
from torchferry.capture.stops import data_dependence, stop
from torchferry.records import Bound, Fault, Finding, Location
from torchferry.records.sites import Site

MOST_LINES = 12
SECONDS = 30.0
# torch's own parts that stop a capture as a whole: the survey names the part, and lines that call it follow from that
_PARTS = ("/torch/ao/", "/torch/jit/", "/torch/nn/utils/parametrize.py")


def problems(bound: Bound) -> tuple[Finding, ...]:
    """Return each line that stops a capture at the example's sizes, as far as the lines before it can be passed."""
    found: list[Finding] = []
    with contextlib.suppress(CannotRewrite):  # what lies beyond a line that cannot be passed stays unknown
        for finding in _one_by_one(eager.fresh(bound.module), bound):
            found.append(finding)
    return tuple(found)


def _one_by_one(module: Any, bound: Bound) -> Iterator[Finding]:
    chosen: list[Site] = []
    until = time.monotonic() + SECONDS
    while len(chosen) < MOST_LINES and time.monotonic() < until:
        fault = _next(module, bound, chosen)
        place = source_map.locate(fault) if fault is not None else None
        if fault is None or place is None or any(s.line == place.line and s.file == place.file for s in chosen):
            return
        if not any(part in frame.file for link in fault.chain() for frame in link.frames for part in _PARTS):
            yield _finding(module, fault, place)
        chosen.append(sites.passing(module, str(place.file), int(place.line or 0)))


def _next(module: Any, bound: Bound, chosen: list[Site]) -> Fault | None:
    """Return what stops a capture in which the chosen lines are given their values, or None."""
    known = eager_values.GivenValues()
    with sites.applied(module, chosen), eager_values.used_by_rewritten_code(known):
        try:
            eager.call(eager.fresh(module), bound.args)
        except Exception as error:  # the model's own code runs; what was changed in it does not
            raise CannotRewrite("it does not run with its values recorded") from error
        known.recording = False
        try:
            once(strategies.ordered()[0], eager.fresh(module), bound.args, None)
        except CannotRewrite:
            raise
        except Exception as error:  # torch may raise anything; that is what is looked for
            return Fault.of(error)
    return None


def _finding(module: Any, fault: Fault, place: Location) -> Finding:
    if stopping_line.data_dependent(fault):
        return data_dependence(module, fault, place, sites.candidates(module, str(place.file), int(place.line or 0)))
    return stop(fault, place)
