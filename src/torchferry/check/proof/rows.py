"""Rows: a slice alone, in the file as it came, gives what the mended file gives for it among others.

claim         the axis is a batch: its slices do not see each other
precondition  at the size that the file had, they did not: measured, where there was more than one. Of a single one
              nothing can be measured; then no likelier reading may have it in a sum (mixing.py)
proof         every slice of what is fed, repeated to the old size, is run in the file as it came
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchferry.check.proof import values
from torchferry.check.proof.moved_size import Drawn, MovedSize
from torchferry.check.proof.runs import close
from torchferry.check.running.trace import Feed

MOST = 24  # slices that are run alone: the first, the last, and some between


def shown(sides: MovedSize) -> bool:
    """Say whether each output was given, slice by slice, by the file as it came."""
    count = len(sides.draws[0].known)
    axes = [sides.axis_of(i) for i in range(count)]
    if -1 in axes or all(a is None for a in axes):
        return False
    size = sides.size
    sized = ((d.known[i].shape[a], d.whole[i].shape[a]) for d in sides.draws for i, a in enumerate(axes) if a is not None)
    if any(pair != (size.was, size.now) for pair in sized):
        return False
    return all(_apart(sides, d, axes) and _alone(sides, d, axes) for d in sides.draws)


def _apart(sides: MovedSize, drawn: Drawn, axes: list[int | None]) -> bool:
    """Whether, at the old size, each slice gives among others what it gives among copies of itself."""
    return sides.size.was == 1 or all(
        _gives(sides, values.taken(drawn.small, sides.size.axes, [row] * sides.size.was), drawn.known, row, axes)
        for row in _some(sides.size.was)
    )


def _alone(sides: MovedSize, drawn: Drawn, axes: list[int | None]) -> bool:
    return all(
        _gives(sides, values.taken(drawn.large, sides.size.axes, [row] * sides.size.was), drawn.whole, row, axes)
        for row in _some(sides.size.now)
    )


def _gives(sides: MovedSize, copies: Feed, among: list[Any], row: int, axes: list[int | None]) -> bool:
    """Whether copies of a slice give, in the file as it came, what the slice gives among others; each of them."""
    alone = sides.right(copies)
    if alone is None:
        return False
    return all(_same(a, b, row, axis) for a, b, axis in zip(alone, among, axes, strict=True))


def _same(alone: Any, among: Any, row: int, axis: int | None) -> bool:
    if axis is None:
        return close(alone, among)
    wanted = np.take(among, [row], axis=axis)
    return close(np.broadcast_to(wanted, alone.shape).copy(), alone)


def _some(count: int) -> list[int]:
    """Return the first, the last and some indices between."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, MOST))})
