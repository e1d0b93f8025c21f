"""Sizes that were set free: is the mended file right at the new ones? One size after the other, asked of the file as it came.

Shown by rows, by windows, or, for axes that the file itself declares as free, by what is stretched; else the mend is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from torchferry.check.proof import rows, stretched, tables, values, windows
from torchferry.check.proof.moved_size import Moved, MovedSize, Run, Size, draw
from torchferry.check.proof.runs import Running, close
from torchferry.check.running.trace import Feed, Tracer
from torchferry.records.rewrites import SizeRewrite


@dataclass(frozen=True, slots=True)
class Mended:
    """A file as it came and mended, with a feed at the old sizes and one at the new; and what was done."""

    tracer: Tracer
    model: onnx.ModelProto
    example: Feed
    feed: Feed
    rewrites: Sequence[SizeRewrite]
    fixed: Mapping[str, Mapping[str, str]]  # the axes that the file had declared as fixed: {input: {axis: name}}
    doubts: Mapping[str, Callable[[], str]]  # why this reading may not be the one: what is mixed, what else can be read, numbers


def sizes(moved: Moved) -> list[Size]:
    """Return the sizes that moved, each with its axes: those that were and are alike move together."""
    pairs = list(dict.fromkeys((was, now) for _, _, was, now in moved))
    return [Size(tuple((n, a) for n, a, *pair in moved if tuple(pair) == p), *p) for p in pairs]


def why_not(at: Mended, moved: Moved) -> str:
    """Return why the new sizes are not shown to be right; nothing where they are."""
    with Running(at.tracer, at.tracer.model, "original") as original, Running(at.tracer, at.model, "mended") as mended:
        right: Run = original
        for number, size in enumerate(found := sizes(moved), 1):
            feed = at.feed
            for later in found[number:]:  # these keep their old size until it is their turn
                feed = values.resized(feed, later.axes, later.was)
            if words := _size_not_shown(at, size, right, mended, feed):
                return words
            right = mended  # it was shown to be right at the sizes so far: now it is the one to ask
    return ""


def _size_not_shown(at: Mended, size: Size, right: Run, mended: Run, feed: Feed) -> str:
    if size.now == 0:
        return _empty(size, right, mended, feed)
    draws = draw(right, mended, size, feed)
    if not any(values.varied(d.large, size.axes) or size.now == 1 for d in draws):
        return f"{size}: no feed could be made on which both files run, and in which the places differ"
    sides = MovedSize(right, mended, size, draws)
    if size.was == 1 and (words := at.doubts["mixed"]() or _may_be_no_batch(sides)):
        return f"{size}: {words}"
    if rows.shown(sides) or (size.was > 1 and windows.shown(sides)):
        return at.doubts["number"]() if any(axis for _, axis in size.axes) else ""  # a batch has its rows to go by
    if any(str(axis) in at.fixed.get(name, {}) for name, axis in size.axes):
        return f"{size}: its places depend on each other, and at the new size the file as it came gives no answer to compare with"
    if not _stretches(at, sides, feed):
        return f"{size}: nothing that the file as it came gives shows what it should give at the new size"
    return at.doubts["read"]() or at.doubts["any number"]()


def _may_be_no_batch(sides: MovedSize) -> str:
    """Return why an axis of size 1 behind others may not be the batch: one before it is, as far as can be seen.

    Where the first axes are all seen to be mixed, as the steps of a recurrent layer are, the batch comes after them.
    """
    drawn = sides.draws[-1]
    for name, axis in sides.size.axes:
        for before in range(axis):
            size = drawn.small[name].shape[before]
            other = sides.right(values.changed(drawn.small, [(name, before)], 0)) if size > 1 else None
            if other is None or not any(_mixed(a, b, size) for a, b in zip(drawn.known, other, strict=True)):
                return f"axis {before} of `{name}` may be the batch, and this one something else"
    return ""


def _mixed(known: Any, other: Any, size: int) -> bool:
    """Whether an output changes at more than one place of an axis, or has no such axis, when one place of an input changes."""
    if not isinstance(known, np.ndarray) or not isinstance(other, np.ndarray) or known.shape != other.shape:
        return False
    axes = [i for i, n in enumerate(known.shape) if n == size]
    moved = [sum(not close(np.take(known, p, i), np.take(other, p, i)) for p in range(size)) for i in axes]
    return not close(known, other) and all(count > 1 for count in moved)


def _stretches(at: Mended, sides: MovedSize, feed: Feed) -> bool:
    counted = tables.read(at.tracer.model, at.rewrites, sides.size.was, sides.size.now)
    if counted is None:
        return False
    if not counted:
        return stretched.shown(sides, sides)
    small = values.resized(feed, sides.size.axes, sides.size.was)
    if not tables.shown(at.tracer, at.tracer.model, at.model, counted, (small, feed)):
        return False
    levelled = [tables.level(m, counted) for m in (at.tracer.model, at.model)]
    with Running(at.tracer, levelled[0], "level") as right, Running(at.tracer, levelled[1], "level-mended") as mended:
        return stretched.shown(sides, MovedSize(right, mended, sides.size, draw(right, mended, sides.size, feed)))


def _empty(size: Size, right: Run, mended: Run, feed: Feed) -> str:
    """Where there are no elements there are only sizes to be right: those of a single element, and none where it was."""
    single, none = right(values.resized(feed, size.axes, size.was)), mended(feed)
    other = right(values.resized(feed, size.axes, size.was + 1))
    if single is None or none is None or len(single) != len(none):
        return f"{size}: the file does not run at both sizes"
    for index, (a, b) in enumerate(zip(single, none, strict=True)):
        c = other[index] if other is not None else None
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.ndim != b.ndim:
            return f"{size}: the outputs are no arrays of the same rank"
        follow = [(c is not None and x != c.shape[i]) or (c is None and x == size.was) for i, x in enumerate(a.shape)]
        wanted = tuple(0 if f else x for f, x in zip(follow, a.shape, strict=True))
        if b.shape != wanted or (b.size and not any(follow)):
            return f"{size}: output {index} has the shape {list(b.shape)}, which nothing shows to be right"
    return ""
