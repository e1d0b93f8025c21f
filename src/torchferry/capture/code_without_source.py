"""Code without a source to read: given by `python -c`, typed at a prompt, run from a string. Its bytecode knows its lines."""

from __future__ import annotations

import linecache
from typing import Any, Literal

from torchferry.capture.rewrites import functions
from torchferry.foreign.python_bytecode import jumps, jumps_back, steps
from torchferry.records import Location


def kind(module: Any, place: Location) -> Literal["branch", "while", "none"]:
    """Return what a line without a source does, as the kinds of rewrites are called: "branch", "while", or "none" of them."""
    if not place.file or not place.line or linecache.getlines(place.file):
        return "none"
    around = [f.__code__ for f in functions.reachable(module, whose=lambda file: file == place.file)]
    code = min((c for c in around if place.line in functions.lines(c)), key=lambda c: len(functions.lines(c)), default=None)
    here = [step for step, line in (steps(code) if code is not None else ()) if line == place.line and jumps(step)]
    if not any(step.opname.startswith("POP_JUMP") for step in here):
        return "none"
    return "while" if any(map(jumps_back, here)) else "branch"
