"""Rewrite the line that stopped a capture, capture again, and so on: all the lines that need it are found in one go."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchferry.capture.rewrites import sites
from torchferry.capture.rewrites.syntax_tree import CannotRewrite
from torchferry.records import Fault, Location
from torchferry.records.findings import CaptureStopped, DataDependent
from torchferry.records.sites import Site

MOST_TRIES = 24
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
    """What stood in the way, in the order it was met; the rewrites that clear it; and whether a program came out."""

    findings: tuple[DataDependent, ...]
    sites: tuple[Site, ...]
    cleared: bool


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture of a module, and what raises CannotRewrite where rewrites of it are known to change what it computes."""

    run: Callable[[], Any]
    check: Callable[[list[Site]], None]


def explore(
    module: Any, capture: Capture, where: Callable[[Fault], Location | None], first: Failed, seconds: float = 60.0
) -> Explored:
    """Return what stops the capture of a module, line by line, after what stopped it first, and the rewrites that clear it."""
    stops: dict[tuple[str, int], _Stop] = {}
    failed: Failed | None = first
    until = time.monotonic() + seconds
    for _ in range(MOST_TRIES):
        if failed is None or time.monotonic() > until or not _advance(module, stops, *failed):
            break
        failed = _try(module, [s.site for s in stops.values() if s.site], capture, where)
    cleared = failed is None
    findings = tuple(_finding(place, stop, cleared) for place, stop in stops.items())
    chosen = tuple(s.site for s in stops.values() if s.site) if cleared else ()
    return Explored(findings, chosen, cleared)


def _try(module: Any, chosen: list[Site], capture: Capture, where: Callable[[Fault], Location | None]) -> Failed | None:
    """Return what stopped a capture under these rewrites, and where; None when nothing did."""
    try:
        capture.check(chosen)
        with sites.applied(module, chosen):
            try:
                capture.run()
            except Exception as error:  # torch may raise anything; what stops this try decides on the next
                return Fault.of(error), where(Fault.of(error))
    except CannotRewrite as error:
        return Fault.of(error), None
    return None


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


def _finding(place: tuple[str, int], stop: _Stop, cleared: bool) -> DataDependent:
    kind = stop.options[0].kind if stop.options else "none"
    return _data_dependent(stop.fault, Location(*place), kind, cleared)


def data_dependence(module: Any, fault: Fault, place: Location) -> DataDependent:
    """Return a line that needs values, with the kind of statement that it is."""
    options = sites.candidates(module, str(place.file), int(place.line or 0))
    return _data_dependent(fault, place, options[0].kind if options else "none", cleared=False)


def _data_dependent(fault: Fault, place: Location, kind: str, cleared: bool) -> DataDependent:
    return DataDependent(kind, code_at(place), summary(fault), cleared, location=place)


def stop(fault: Fault, place: Location | None, pinned: tuple[str, ...] = ()) -> CaptureStopped:
    """Return a line that stopped a capture, and all that was said of it."""
    said = "\n".join(f"{link.type_name}: {link.text}" for link in fault.chain())
    return CaptureStopped(code_at(place), summary(fault), said, pinned, location=place)


def code_at(place: Location | None) -> str:
    """Return the line of source at a place."""
    return linecache.getline(place.file, place.line).strip() if place and place.file and place.line else ""


def summary(fault: Fault) -> str:
    """Return the first telling line of a message that may run over pages."""
    lines = [t.strip() for t in fault.text.split("\n") if t.strip()]
    return lines[0][:200] if lines else fault.type_name
