"""One size that moved, and the two files that are asked about it: the one that is known to be right, and the mended one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchferry.check.proof import values
from torchferry.check.running.trace import Feed

Run = Callable[[Feed], list[Any] | None]
Moved = list[tuple[str, int, int, int]]  # (input of the graph, axis, the example's size, the other size)


@dataclass(frozen=True, slots=True)
class Size:
    """A size that moved: the axes of inputs that have it, what it was, and what it is now."""

    axes: tuple[tuple[str, int], ...]
    was: int
    now: int

    def __str__(self) -> str:
        where = ", ".join(f"axis {axis} of `{name}`" for name, axis in self.axes)
        return f"{where} ({self.was} -> {self.now})"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A feed at the new size on which the mended file runs, with what it gives; and one at the old size, likewise."""

    large: Feed
    whole: list[Any]
    small: Feed
    known: list[Any]


@dataclass(frozen=True, slots=True)
class MovedSize:
    """The file that is right at the old size, the mended one, the size, and feeds for both."""

    right: Run
    mended: Run
    size: Size
    draws: tuple[Drawn, ...]

    def axis_of(self, output: int) -> int | None:
        """Return the axis of an output that moved just as the inputs did; None where none did, -1 where it is not so simple."""
        old, new = self.draws[0].known[output], self.draws[0].whole[output]
        if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray) or old.ndim != new.ndim:
            return -1
        moved = [i for i, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)) if a != b]
        return None if not moved else moved[0] if len(moved) == 1 else -1


def draw(right: Run, mended: Run, size: Size, feed: Feed, seeds: int = 3) -> tuple[Drawn, ...]:
    """Return feeds on which both files run: the user's values, and values drawn anew where the file takes them."""
    found: list[Drawn] = []
    for seed in range(seeds):
        large = values.drawn(feed, seed) if seed else dict(feed)
        small = values.resized(large, size.axes, size.was)
        known, whole = right(small), mended(large)
        if known is not None and whole is not None and (seed == 0 or not _makes_nan(known, found)):
            found.append(Drawn(large, whole, small, known))
    return tuple(found)


def _makes_nan(outputs: list[Any], found: list[Drawn]) -> bool:
    """Whether values that we drew make NaN where the user's make none: they are outside what the file is for."""
    usual = bool(found) and any(_has_nan(o) for o in found[0].known)
    return not usual and any(_has_nan(o) for o in outputs)


def _has_nan(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and bool(np.isnan(value).any())
