"""Stretched: what is fed twice over, or each element of it twice, gives its outputs twice over, or each of them twice.

claim         the constants that were made anew for the new size are what the model would have made for it
precondition  the file itself declares the axis as free: at other sizes its nodes mean what they say, and only those
              constants were in the way. No number in it may be one that goes with the old size, and no other reading
              of the constants may run and give something else (both are seen to by baked.py)
proof         for each output, one of
                twice     the example twice over, or each element twice, gives it twice over, or each of it twice;
                          one of a fixed size must stay as it is under both
                beginning the first part is as before, whatever is behind it or hidden by a mask; and behind it, where
                          the file as it came has no answer, the last copy of each doubled element gives what the
                          element gave. Tables of positions are levelled for that on both sides, see tables.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchferry.check.proof import values
from torchferry.check.proof.moved_size import Drawn, MovedSize, Size
from torchferry.check.proof.runs import close

Stretch = Callable[[np.ndarray, int], np.ndarray]


def shown(sides: MovedSize, level: MovedSize) -> bool:
    """Say whether each output is shown; `level` are the same two files without their tables of positions."""
    if sides.size.was < 2 or not sides.draws or not level.draws:  # of a single element twice over nothing is to be learned
        return False
    return all(_output_shown(sides, level, i) for i in range(len(sides.draws[0].known)))


def _output_shown(sides: MovedSize, level: MovedSize, output: int) -> bool:
    moves = sides.axis_of(output) is not None
    both = all if not moves else any
    if both(_doubled(sides, output, how) for how in (_twice_over, _each_twice)):
        return True
    beginning = (moves and _begins(sides, output)) or _hidden_behind(sides, output)
    beyond = both(_doubled(level, output, how) for how in (_twice_over, _each_twice)) or (moves and _last_copies(level, output))
    return beginning and beyond


def _twice_over(array: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate([array, array], axis=axis)


def _each_twice(array: np.ndarray, axis: int) -> np.ndarray:
    return np.repeat(array, 2, axis=axis)


def _stretched(drawn: Drawn, size: Size, how: Stretch) -> dict[str, Any]:
    feed = dict(drawn.small)
    for name, axis in size.axes:
        feed[name] = how(feed[name], axis)
    return feed


def _doubled(sides: MovedSize, output: int, how: Stretch) -> bool:
    """Whether the doubled example gives the doubled output; and another order the other order, if it did before."""
    axis = sides.axis_of(output)
    for drawn in sides.draws:
        given = sides.mended(_stretched(drawn, sides.size, how))
        wanted = drawn.known[output] if axis is None else how(drawn.known[output], axis)
        if axis == -1 or given is None or not close(given[output], wanted):
            return False
    return _keeps_order(sides, output)


def _last_copies(sides: MovedSize, output: int) -> bool:
    """Whether the last copy of each doubled element gives what the element gave: all that it may look back at is doubled."""
    axis = sides.axis_of(output)
    if axis is None or axis < 0:
        return False
    for drawn in sides.draws:
        given = sides.mended(_stretched(drawn, sides.size, _each_twice))
        known = drawn.known[output]
        if given is None or given[output].shape[axis] != 2 * known.shape[axis]:
            return False
        if not close(np.take(given[output], np.arange(1, 2 * known.shape[axis], 2), axis), known):
            return False
    return True


def _begins(sides: MovedSize, output: int) -> bool:
    """Whether the output's first part is what it was, and what comes behind never mattered to it."""
    axis, size = sides.axis_of(output), sides.size
    if axis is None or axis < 0:
        return False
    return all(_begins_alike(sides, drawn, output, axis) for drawn in sides.draws) and (
        size.now < size.was or all(_blind_to_what_follows(sides, drawn, output, axis) for drawn in sides.draws)
    )


def _begins_alike(sides: MovedSize, drawn: Drawn, output: int, axis: int) -> bool:
    small = values.resized(drawn.large, sides.size.axes, sides.size.was)
    known, new = sides.right(small), drawn.whole[output]
    if known is None:
        return False
    old = known[output]
    shorter = min(old.shape[axis], new.shape[axis])
    sizes = {(old.shape[axis], new.shape[axis]), (sides.size.was, sides.size.now)}
    grew = len({b - a for a, b in sizes}) == 1 or len({a / b for a, b in sizes}) == 1
    return grew and close(np.take(new, range(shorter), axis), np.take(old, range(shorter), axis))


def _blind_to_what_follows(sides: MovedSize, drawn: Drawn, output: int, axis: int) -> bool:
    """Whether, at the old size, other things behind a place leave what is given up to it as it is: at every place."""
    size, other = sides.size, values.resized(values.drawn(drawn.large, 5), sides.size.axes, sides.size.was)
    count = drawn.known[output].shape[axis]
    for kept in range(1, size.was):
        first = values.taken(drawn.small, size.axes, range(kept))
        rest = values.taken(other, size.axes, range(kept, size.was))
        given = sides.right(values.joined(first, rest, size.axes))
        part = range(count * kept // size.was)
        if given is None or not close(np.take(given[output], part, axis), np.take(drawn.known[output], part, axis)):
            return False
    return True


def _hidden_behind(sides: MovedSize, output: int) -> bool:
    """Whether what a mask hides behind the old size leaves the output, or its first part, as it was."""
    size = sides.size
    masks = [(name, axis) for name, axis in size.axes if "mask" in name.lower()]
    if not masks or size.now < size.was:
        return False
    axis = sides.axis_of(output)
    for drawn in sides.draws:
        large = dict(drawn.large)
        for name, at in masks:
            large[name] = large[name].copy()
            large[name][(slice(None),) * at + (slice(size.was, None),)] = 0
        known, given = sides.right(values.resized(drawn.large, size.axes, size.was)), sides.mended(large)
        if known is None or given is None or axis == -1:
            return False
        part = given[output] if axis is None else np.take(given[output], range(known[output].shape[axis]), axis)
        if not close(part, known[output]):
            return False
    return True


def _keeps_order(sides: MovedSize, output: int) -> bool:
    """Whether the mended file follows a change of order at the new size, if the file did at its own."""
    axis = sides.axis_of(output)
    for drawn in sides.draws:
        before = _follows(sides.right, drawn.small, drawn.known, sides.size.was, sides, output, axis)
        if before and not _follows(sides.mended, drawn.large, drawn.whole, sides.size.now, sides, output, axis):
            return False
    return True


def _follows(run: Any, feed: Any, given: list[Any], count: int, sides: MovedSize, output: int, axis: int | None) -> bool:
    order = np.roll(np.arange(count)[::-1], 1)
    other = run(values.taken(feed, sides.size.axes, order))
    if other is None:
        return False
    if axis is None or given[output].shape[axis] != count:
        return close(other[output], given[output])
    return close(other[output], np.take(given[output], order, axis))
