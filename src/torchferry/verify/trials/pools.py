"""Calls drawn from pools: every number that a model or a file was seen to hold values against, in all inputs and columns at once.

A fault may need several things to hold together: `(kind == 17) & (area == 905)`. One number at a time never shows it, nor does
a free draw; but where every place is filled from its own short list, a few hundred rows come by most pairs and triples.
Eager is called on many draws, which costs little; those that take a side of a condition that none has taken become trials.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence

import torch

from torchferry.verify.trials.constants import Number, for_input
from torchferry.verify.trials.plans import TrialPlan
from torchferry.verify.trials.thresholds import MovedPart, Solved, slots
from torchferry.verify.trials.tries import Tries
from torchferry.verify.trials.turns import GLANCE, within

DRAWN = 2048  # rows drawn in all, in as many calls of eager as that takes; those that show something new become trials
FEWEST, MOST_DRAWS = 4, 400  # such calls
ALWAYS, ALWAYS_ROWS, MOST_ALWAYS = 2, 64, 12  # the first calls, and those up to so many rows, become trials whatever they show
ROWS = (512, 128, 32)  # of a batch, the most that costs little
SHARE = 0.7  # of the numbers, which come from a pool; the others are drawn as ever
MOST = 64  # numbers of one pool
Pools = Mapping[MovedPart, torch.Tensor]


def pooled(
    tries: Tries, found: Sequence[Number], solved: Sequence[Solved], numeric: Sequence[int], seed: int
) -> Iterator[TrialPlan]:
    """Yield calls drawn from pools, the first ones and those that take sides which no call has taken so far."""
    pools, sizes = _pools(tries, found, solved, numeric), many_rows(tries, seed)
    for one_by_one in (False, True):
        if (yield from _draws(tries, _accepted(tries, pools, seed, one_by_one), sizes, seed)):
            return


def _draws(tries: Tries, pools: Pools, sizes: Mapping[str, int], seed: int) -> Generator[TrialPlan, None, bool]:
    """Yield calls drawn from pools, and return whether eager took any of the first few."""
    taken = False
    for number in range(MOST_DRAWS if pools else 0):
        args = _drawn(tries, pools, sizes, seed + 100 + number)
        rows = max((a.shape[0] for a in args or () if a.dim()), default=1)
        if args is None or (number >= FEWEST and number * rows >= ALWAYS_ROWS and (number * rows > DRAWN or not _missing(tries))):
            break
        words = "".join(f"{name}={size}, " for name, size in sizes.items())
        plan = TrialPlan(sizes, "pooled", seed, given=args, name=f"{words}values=pooled, draw {number + 1}")
        before = _sides(tries)
        anyhow = number < ALWAYS or (number < MOST_ALWAYS and number * rows < ALWAYS_ROWS)
        if tries.takes(plan):
            taken = True
            if anyhow or _sides(tries) > before:
                yield plan
        if number + 1 == ALWAYS and not taken:  # some number of a pool is in all of them that eager does not take
            break
    return taken


def _missing(tries: Tries) -> bool:
    """Return whether some condition has never been true, or never false."""
    return any(len(d.sides) < 2 for d in tries.decisions.values() if d.kind == "condition")


def _sides(tries: Tries) -> int:
    return sum(len(d.sides) for d in tries.decisions.values() if d.kind in ("compare", "condition", "clip"))


def _pools(
    tries: Tries, found: Sequence[Number], solved: Sequence[Solved], numeric: Sequence[int]
) -> dict[MovedPart, list[float]]:
    """Return the numbers for each part of a call: those known of its input, and those solved for in that part."""
    pools: dict[MovedPart, list[float]] = {}
    for place in numeric:
        parts = slots(tries, [place])
        for slot in parts[1:] or parts:
            hits = [float(v) for s in solved if s.slot in (slot, MovedPart(place)) for v in s.hits[:4]]
            pools[slot] = list(dict.fromkeys([*hits, *_multiples(tries, place), *for_input(found, place)]))
    return {slot: numbers for slot, numbers in pools.items() if numbers}


def _multiples(tries: Tries, place: int) -> Iterator[float]:
    """Yield multiples of what an input is divided by, around the example's numbers: 1900 for years that are taken modulo 100."""
    example = tries.bound.args[place]
    if not example.numel() or example.is_complex() or example.dtype == torch.bool:
        return
    middle = float(example.to(torch.float64).median())
    for decision in tries.decisions.values():
        for number in decision.numbers if decision.kind == "digits" and place in decision.inputs else ():
            if number >= 2 and math.isfinite(middle):
                yield from (number * (math.floor(middle / number) + step) for step in (0, 1, -1, 2))


def _beside(numbers: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    """Return numbers of a dtype, each twice, and their next ones on either side; those that it cannot hold are left out."""
    if like.is_floating_point():
        exact = torch.tensor(numbers, dtype=torch.float64).to(like.dtype)
        exact = exact[exact.isfinite()]
        return torch.cat([exact, exact, exact * (1 + 2.0**-7), exact * (1 - 2.0**-7)]).to(torch.float64)
    info = torch.iinfo(like.dtype)
    exact = [math.floor(n) for n in numbers]
    beside = dict.fromkeys(w for n in exact for w in (n - 1, n + 1) if w not in exact)
    return torch.tensor([w for w in (*exact, *exact, *beside) if info.min <= w <= info.max], dtype=torch.float64)


def _accepted(
    tries: Tries, pools: Mapping[MovedPart, Sequence[float]], seed: int, one_by_one: bool
) -> dict[MovedPart, torch.Tensor]:
    """Return the pools as far as eager takes them: all of a part's numbers, or those that it takes one by one.

    A call of few places may come by none of the numbers that eager does not take, so that all of them are believed of a pool.
    """
    found: dict[MovedPart, torch.Tensor] = {}
    for slot, numbers in pools.items():
        values = _beside(numbers[:MOST], tries.bound.args[slot.place])
        if values.numel() and (one_by_one or not _takes(tries, slot, values, seed)):
            values = values[torch.tensor([_takes(tries, slot, v.reshape(1), seed) for v in values])]
        if values.numel():
            found[slot] = values
    return found


def _takes(tries: Tries, slot: MovedPart, values: torch.Tensor, seed: int) -> bool:
    args = _drawn(tries, {slot: values}, {}, seed)
    if args is None or tries.budget.empty(directed=True):
        return False
    return tries.takes(TrialPlan({}, "pooled", given=args))


def _drawn(tries: Tries, pools: Pools, sizes: Mapping[str, int], seed: int) -> tuple[torch.Tensor, ...] | None:
    """Return a call with most numbers of each part taken from its pool, or None where none can be made of these sizes."""
    try:
        args = TrialPlan(sizes, "random", seed).args(tries.bound)
    except ValueError:
        return None
    generator = torch.Generator().manual_seed(seed)
    for slot, pool in pools.items():
        values = slot.read(args)
        picked = pool[torch.randint(0, len(pool), values.shape, generator=generator)]
        args = slot.write(args, torch.where(torch.rand(values.shape, generator=generator) < SHARE, picked, values))
    return tuple(a.sort(dim=-1).values if n in tries.bound.searched and a.dim() else a for n, a in enumerate(args))


def many_rows(tries: Tries, seed: int, most: Sequence[int] = ROWS) -> dict[str, int]:
    """Return sizes with as many rows as cost little, or none where no size of the first axis moves."""
    names = {s.shape[0] for s in tries.bound.signature.inputs if s.shape}
    for dim in (d for d in tries.bound.signature.dims if d.name in names):
        for rows in most:
            size = within(dim, rows)
            plan = tries.linked(TrialPlan({dim.name: size}, "random", seed + 1)) if size is not None else None
            if plan is not None and tries.budget.work.of(plan.sizes) <= GLANCE and tries.takes(plan, finite=False):
                return dict(plan.sizes)
    return {}
