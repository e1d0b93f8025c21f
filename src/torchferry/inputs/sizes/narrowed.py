"""Sizes that are given up: declared in a smaller range than the model takes, or fixed, as `Narrow` edits say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torchferry.edits.inputs import Cut, Narrow
from torchferry.guards import symbols
from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.discover import FoundSizes, table
from torchferry.records import Dim, Location, Size
from torchferry.records.findings import SizeGivenUp


class CannotNarrow(Exception):
    """The sizes to be given up are not there, or the example itself lies outside of what would be left."""


def narrowed(found: FoundSizes, edits: Sequence[Narrow], names: Sequence[str], example: Sequence[tuple[int, ...]]) -> FoundSizes:
    """Return what was found with less declared, and a finding for each size that was given up."""
    for name, edit in _standing(edits).items():
        cut = edit.sizes[name]
        dim = next((d for d in found.dims if d.name == name), None)
        if dim is None:
            raise CannotNarrow(f"no size that moves is called `{name}`")
        own = _own_size(name, found, example)
        less = _fixed(found, dim, own, edit) if cut is None else _cut(found, dim, own, cut, edit)
        found = replace(less, findings=(*less.findings, _given_up(dim, own, cut, edit, found, names)))
    if not edits:
        return found
    conditions = tuple(c for c in found.conditions if symbols(c) <= {d.name for d in found.dims})
    return replace(found, conditions=conditions, notes=(*table(names, found.shapes, found.dims, found.why), *conditions))


def _standing(edits: Sequence[Narrow]) -> dict[str, Narrow]:
    """Return the edit that counts for each size: a later one is a closer look, and may give a size back."""
    counts: dict[str, Narrow] = {}
    for edit in edits:
        counts |= dict.fromkeys(edit.sizes, edit)
        for name in edit.released:
            counts.pop(name, None)
    return counts


def _own_size(name: str, found: FoundSizes, example: Sequence[tuple[int, ...]]) -> int:
    """Return what the user's own example has for a dim; the one that is worked with may have been made without ones."""
    for shape, sizes in zip(found.shapes, example, strict=True):
        for size, number in zip(shape, sizes, strict=True):
            if size == name:
                return number
    return found.sizes[name]


def _cut(found: FoundSizes, dim: Dim, own: int, cut: Cut, edit: Narrow) -> FoundSizes:
    low, high, step = cut
    if own < low or (high is not None and own > high) or own % step:
        raise CannotNarrow(f"the example has {own} for `{dim.name}`, outside of {low}..{'' if high is None else high}")
    less = replace(dim, low=low, high=high, multiple_of=step, why=_short(edit))
    used = found.sizes[dim.name]
    inside = used if used >= low and (high is None or used <= high) and not used % step else own
    sizes = {**found.sizes, dim.name: inside}
    dims = tuple(less if d.name == dim.name else d for d in found.dims)
    return replace(found, dims=dims, sizes=sizes, base=_base(found, found.shapes, sizes))


def _fixed(found: FoundSizes, dim: Dim, own: int, edit: Narrow) -> FoundSizes:
    shapes = tuple(tuple(_with(size, dim.name, own) for size in shape) for shape in found.shapes)
    why = tuple(
        tuple(
            _short(edit) if isinstance(new, int) and isinstance(old, str) else reason
            for old, new, reason in zip(before, after, reasons, strict=True)
        )
        for before, after, reasons in zip(found.shapes, shapes, found.why, strict=True)
    )
    sizes = {name: size for name, size in found.sizes.items() if name != dim.name}
    dims = tuple(d for d in found.dims if d.name != dim.name)
    return replace(found, shapes=shapes, dims=dims, sizes=sizes, why=why, base=_base(found, shapes, {**sizes, dim.name: own}))


def _with(size: Size, name: str, number: int) -> Size:
    """Return a size in which a dim is a number: `past + sequence` becomes `past + 4`."""
    if name not in size_text.names(size):
        return size
    text = re.sub(rf"\b{re.escape(name)}\b", str(number), str(size))
    return text if size_text.names(text) else size_text.value(text, {})


def _base(found: FoundSizes, shapes: Sequence[Sequence[Size]], sizes: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(size_text.value(new, sizes) if isinstance(old, str) else number for old, new, number in zip(*row, strict=True))
        for row in zip(found.shapes, shapes, found.base, strict=True)
    )


def _short(edit: Narrow) -> str:
    """Return the reason in a few words, for the table of sizes."""
    return f"given up: {edit.code or 'it could not be verified'}"


def _given_up(dim: Dim, own: int, cut: Cut | None, edit: Narrow, found: FoundSizes, names: Sequence[str]) -> SizeGivenUp:
    axes = (f"{n}[{a}]" for n, shape in zip(names, found.shapes, strict=True) for a, s in enumerate(shape) if s == dim.name)
    now = str(own) if cut is None else str(replace(dim, low=cut[0], high=cut[1], multiple_of=cut[2], why="")).split(" = ", 1)[1]
    was = str(replace(dim, why="")).split(" = ", 1)[1]
    place = Location(file=edit.file, line=edit.line)
    return SizeGivenUp(dim.name, tuple(axes), was, now, cut is None, edit.code, edit.why, location=place)
