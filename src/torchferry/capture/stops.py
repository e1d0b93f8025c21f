"""A line that stopped a capture, as a finding: its code, and what was said of it."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

from torchferry.capture import code_without_source
from torchferry.records import Fault, Location
from torchferry.records.findings import CaptureStopped, DataDependent
from torchferry.records.sites import Site


def data_dependence(module: Any, fault: Fault, place: Location, options: Sequence[Site], cleared: bool = False) -> DataDependent:
    """Return a line that needs values, with the kind of statement that it is, by the rewrites that may suit it."""
    kind = options[0].kind if options else code_without_source.kind(module, place)
    return DataDependent(kind, code_at(place), fault.line[:200], cleared, location=place)


def stop(fault: Fault, place: Location | None, pinned: tuple[str, ...] = ()) -> CaptureStopped:
    """Return a line that stopped a capture, and all that was said of it."""
    said = "\n".join(f"{link.type_name}: {link.text}" for link in fault.chain())
    return CaptureStopped(code_at(place), fault.line[:200], said, pinned, location=place)


def code_at(place: Location | None) -> str:
    """Return the line of source at a place, or which line it is where the source is not at hand."""
    if place is None or not place.file or not place.line:
        return ""
    return linecache.getline(place.file, place.line).strip() or f"line {place.line}"
