"""Calls that a walk comes by: rows of the example, changed a little at a time, as far as eager takes them.

A model may take nothing that is drawn: codes with a check digit, tours that come by every town, ballots that rank everybody.
Where all that is left are the example's own rows, they say little of others. But what keeps such a law is often two small
changes away from what does: two places swapped, one number moved and another moved back. Each step is put to eager alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torchferry.verify.trials.plans import TrialPlan
from torchferry.verify.trials.tries import Tries

WALKS, STEPS = 4, 150  # walks for each input, and the changes in each that are put to eager
STOPS = 4  # on each walk, its end among them
LAWLESS = ("times 10", "grid", "ties", "spread 10")
WHOLE_AND_LAWLESS = ("spread 10", "spread 3", "rows 10")  # the others leave whole numbers as they are


def walked(tries: Tries, seed: int) -> Iterator[TrialPlan]:
    """Yield calls on the way from the example, for each input of which eager takes nothing that is freely made."""
    for place, example in enumerate(tries.bound.args):
        name = tries.bound.signature.inputs[place].name
        if tries.budget.cheap and _refuses_others(tries, name, example, seed):
            for number, args in enumerate(_walk(tries, place, example, seed)):
                yield TrialPlan({}, "walked", seed, given=args, only=name, name=f"values=walked in {name}, call {number + 1}")


def _refuses_others(tries: Tries, name: str, example: torch.Tensor, seed: int) -> bool:
    """Return whether eager refuses all of some ways to fill an input that hold to no law."""
    if not example.dim() or example.numel() < 2 or example.dtype == torch.bool:
        return False
    ways = LAWLESS if example.is_floating_point() else WHOLE_AND_LAWLESS
    return not any(tries.takes(TrialPlan({}, values, seed + 1, only=name), finite=False) for values in ways)


def _walk(tries: Tries, place: int, example: torch.Tensor, seed: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield where some walks come by and end, each drawn to another of the example's numbers, the most frequent first."""
    values, counts = example.unique(return_counts=True)
    favourites = values[counts.argsort(descending=True)]
    for number in range(WALKS):
        chance = torch.Generator().manual_seed(seed + number)
        at, taken, tried = example.clone(), torch.ones(len(CHANGES)), 2 * torch.ones(len(CHANGES))
        come_by: list[torch.Tensor] = []
        for step in range(STEPS):
            kind = int(torch.multinomial(taken / tried, 1, generator=chance))  # what eager takes more often is tried more often
            there = at.clone()
            rows = there.reshape(example.shape[0] if example.dim() > 1 else 1, -1)  # a view
            CHANGES[kind](rows[step % len(rows)], favourites[number % len(favourites)], example.reshape(-1), chance)
            tried[kind] += 1
            args = (*tries.bound.args[:place], there, *tries.bound.args[place + 1 :])
            if not torch.equal(there, at) and tries.takes(TrialPlan({}, "walked", given=args)):
                at, taken[kind] = there, taken[kind] + 1
                come_by.append(there)
        for stop in come_by[:: -max(1, len(come_by) // STOPS)][:STOPS]:
            yield (*tries.bound.args[:place], stop, *tries.bound.args[place + 1 :])


def _places(row: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
    return torch.randint(0, row.numel(), (2,), generator=chance)


def _swap(row: torch.Tensor, favourite: torch.Tensor, pool: torch.Tensor, chance: torch.Generator) -> None:
    places = _places(row, chance)
    row[places] = row[places.flip(0)]


def _redraw(row: torch.Tensor, favourite: torch.Tensor, pool: torch.Tensor, chance: torch.Generator) -> None:
    row[_places(row, chance)] = pool[torch.randint(0, pool.numel(), (2,), generator=chance)]


def _prefer(row: torch.Tensor, favourite: torch.Tensor, pool: torch.Tensor, chance: torch.Generator) -> None:
    row[_places(row, chance)[0]] = favourite


def _fill(row: torch.Tensor, favourite: torch.Tensor, pool: torch.Tensor, chance: torch.Generator) -> None:
    row[torch.rand(row.shape, generator=chance) < torch.rand((), generator=chance)] = favourite


def _shift(row: torch.Tensor, favourite: torch.Tensor, pool: torch.Tensor, chance: torch.Generator) -> None:
    """Move one number up and another down by as much."""
    one, two = _places(row, chance)
    size = float(pool.to(torch.float64).std(correction=0)) or 1.0
    step = (size * torch.rand((), generator=chance)).to(row.dtype) if row.is_floating_point() else torch.ones((), dtype=row.dtype)
    row[one] += step
    row[two] -= step


def _move(row: torch.Tensor, favourite: torch.Tensor, pool: torch.Tensor, chance: torch.Generator) -> None:
    """Move one number up or down: where the sequences end that lie one after the other in a row."""
    size = float(pool.to(torch.float64).std(correction=0)) or 1.0
    step = size * torch.randn((), generator=chance)
    row[_places(row, chance)[0]] += step.to(row.dtype) if row.is_floating_point() else step.sign().to(row.dtype)


CHANGES = (_swap, _redraw, _prefer, _fill, _shift, _move)
