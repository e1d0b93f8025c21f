"""Sizes at which eager goes another way, found by calling it: a ladder of sizes, and halving between two rungs that differ.

Whatever an `if` on a size is written with, a root, a share, a config, its lines are run on one side and not on the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from torchferry.records import Dim
from torchferry.verify.trials.plans import TrialPlan
from torchferry.verify.trials.tries import Tries

LONGEST = 4096
RUNGS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
# primes, which no block or window divides; 8 bits count to 127 or 255. Beyond them sums of float32 lose their digits
LONG = (4099, 2053, 1031, 521, 307, 131)
MOST_TURNS = 4  # of one size
GLANCE = 3e7  # multiply-adds that one call of the ladder may cost
LONG_CALL = 1e8  # and that a long call may
VERY_LONG_CALL = 1e7  # and one that is unusual besides, or of more numbers than are looked through in no time
IN_A_ROW = 8  # sizes after the example's, one by one: what is rounded by halves goes round in eights
Way = frozenset[tuple[str, int, str]]


def within(dim: Dim, size: int) -> int | None:
    """Return a size rounded up to what the dim moves in, or None where the file does not promise it."""
    step = max(1, dim.multiple_of)
    rounded = -(-size // step) * step
    return rounded if max(dim.low, 0) <= rounded <= (rounded if dim.high is None else dim.high) else None


def turns(tries: Tries, dim: Dim, base: Mapping[str, int], seed: int) -> Iterator[int]:
    """Yield the sizes of one dim from which on eager runs other lines than just below."""
    rungs = sorted({s for r in (*RUNGS, base[dim.name]) if (s := within(dim, r)) is not None and s <= LONGEST})
    ways = {size: way for size in rungs if (way := _way(tries, dim.name, size, seed)) is not None}
    known = list(ways)
    found = 0
    for low, high in itertools.pairwise(known):
        if ways[low] != ways[high] and found < MOST_TURNS:
            found += 1
            yield _between(tries, dim, low, high, ways, seed)


def _between(tries: Tries, dim: Dim, low: int, high: int, ways: dict[int, Way], seed: int) -> int:
    """Return the first size, above one and up to another, at which eager no longer goes the first one's way."""
    step = max(1, dim.multiple_of)
    first = ways[low]
    while high - low > step:
        middle = (low + high) // 2 // step * step
        if _way(tries, dim.name, middle, seed) == first:
            low = middle
        else:
            high = middle
    return high


def _way(tries: Tries, name: str, size: int, seed: int) -> Way | None:
    seen = tries.look(TrialPlan({name: size}, "random", seed + 1)) if tries.budget.work.of({name: size}) <= GLANCE else None
    return None if seen is None else frozenset(seen.places)


def too_long(tries: Tries, name: str, size: int) -> bool:
    """Return whether a call is so long that its numbers alone cost more than it is likely to tell."""
    return size > 2 * LONGEST and not tries.budget.within({name: size}, VERY_LONG_CALL / 2)


def long_sizes(tries: Tries, dim: Dim, base: Mapping[str, int]) -> list[int]:
    """Return two sizes far beyond the example's: the longest that its cost allows, and one that 8 bits do not count to."""
    sizes = [s for n in LONG if n > base[dim.name] and (s := within(dim, n)) is not None]
    cheap = [s for s in sizes if tries.budget.within({dim.name: s}, LONG_CALL) and not too_long(tries, dim.name, s)]
    return list(dict.fromkeys(cheap[:1] + [s for s in cheap if s < 512][:1]))


def in_a_row(tries: Tries, dim: Dim, base: Mapping[str, int]) -> list[int]:
    """Return the next sizes after the example's, where they cost little: all residues of what sizes are divided by."""
    step = max(1, dim.multiple_of)
    sizes = [base[dim.name] + n * step for n in range(1, IN_A_ROW + 1)]
    return [s for s in sizes if within(dim, s) == s and tries.budget.within({dim.name: s}, GLANCE / 10)]


def around(dim: Dim, marks: Sequence[int], example: int) -> Iterator[int]:
    """Yield sizes below, at and above each mark and its double, within what the file promises.

    Where a size moves in steps, a mark may also be about how many steps there are.
    """
    step = max(1, dim.multiple_of)
    for mark in marks:
        steps = (mark * step, (mark + 1) * step) if step > 1 else ()
        for size in (mark, mark + 1, mark - 1, 2 * mark, 2 * mark + 1, *steps):
            if (fit := within(dim, size)) is not None and fit != example and fit >= 1:
                yield fit
