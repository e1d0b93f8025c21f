"""The user's line behind a failed capture, found by a second look where the message itself does not have it."""

from __future__ import annotations

import re
from typing import Any

import torch

from torchferry.capture import guards, source_map, strategies
from torchferry.capture.rewrites import kept_attributes
from torchferry.foreign import torch_messages
from torchferry.guards import symbols
from torchferry.records import Bound, Fault, Location


def data_dependent(fault: Fault) -> bool:
    """Say whether a capture failed because Python asked for the value of a tensor."""
    return any(torch_messages.needs_values(link.type_name, link.text) for link in fault.chain())


def pinned(fault: Fault) -> bool:
    """Say whether a capture failed because a size that should move was fixed."""
    return any(torch_messages.fixes_a_size(link.text) for link in fault.chain())


def pinned_dims(fault: Fault, bound: Bound) -> list[str]:
    """Return the dims that a failed capture fixed, as torch's message names them."""
    found: dict[str, None] = {}
    for link in fault.chain() if pinned(fault) else ():
        for place in re.findall(r"L\['\w+'\]\.size\(\)\[\d+\]", link.text):
            text = guards.translate(place, bound)
            found |= dict.fromkeys(sorted(symbols(text)) if text else ())
    return list(found)


def locate(fault: Fault, module: Any, bound: Bound) -> Location | None:
    """Return the user's line that stopped a capture."""
    if pinned(fault):
        place = _pinning_line(module, bound, pinned_dims(fault, bound))
        if place is not None:
            return place
    return kept_attributes.stopped_at(fault, module) or source_map.locate(fault)


def _pinning_line(module: Any, bound: Bound, dims: list[str]) -> Location | None:
    """Return the line that fixed a size: the same capture, with leave to fix it, records who did."""
    from torchferry.capture.attempt import once

    free = strategies.Strategy("non-strict", lambda m, a, s: strategies.non_strict(m, a, _optional(s)))
    try:
        program = once(free, module, bound.args, bound.dynamic_shapes)
    except Exception:  # then the second look shows no more than the first did
        return None
    found = [g for g in guards.read(program, bound) if g.location is not None and symbols(g.text) & set(dims)]
    equal = [g for g in found if g.text.startswith("Eq(")]
    # `while t < n` fixes n without saying so: by one bound after the other, of which the last closes the range
    return next((g.location for g in (*equal, *reversed(found))), None)


def _optional(shapes: Any) -> Any:
    if isinstance(shapes, dict):
        return {axis: torch.export.Dim.AUTO if dim is not None else None for axis, dim in shapes.items()}
    if isinstance(shapes, tuple | list):
        return tuple(_optional(s) for s in shapes)
    return shapes
