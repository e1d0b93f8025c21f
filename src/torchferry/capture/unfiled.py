"""Code without a source to read: given by `python -c`, typed at a prompt, run from a string. Its bytecode knows its lines."""

from __future__ import annotations

import dis
import linecache
from typing import Any

from torchferry.capture.rewrites import functions
from torchferry.records import Location


def kind(module: Any, place: Location) -> str:
    """Return what a line without a source does, as the kinds of rewrites are called: "branch", "while", or "none" of them."""
    if not place.file or not place.line or linecache.getlines(place.file):
        return "none"
    around = [f.__code__ for f in functions.reachable(module, whose=lambda file: file == place.file)]
    code = min((c for c in around if place.line in functions.lines(c)), key=lambda c: len(functions.lines(c)), default=None)
    steps = dis.get_instructions(code) if code is not None else ()
    jumps = {step.opname for step in steps if step.positions and step.positions.lineno == place.line and "JUMP" in step.opname}
    if not any(name.startswith("POP_JUMP") for name in jumps):
        return "none"
    return "while" if any("BACKWARD" in name for name in jumps) else "branch"
