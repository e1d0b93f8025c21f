"""Calls that a walk comes by: rows of the example, changed a little at a time, as far as eager takes them.

A model may take nothing that is drawn: codes with a check digit, tours that come by every town, ballots that rank everybody.
Where all that is left are the example's own rows, they say little of others. But what keeps such a law is often two small
changes away from what does: two places swapped, one number moved and another moved back. Each step is put to eager alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torchferry.verify.trials.plans import Plan
from torchferry.verify.trials.tries import Tries

STEPS = 400  # changes that are put to eager
CALLS = 6  # trials that a walk gives


def walked(tries: Tries, seed: int) -> Iterator[Plan]:
    """Yield calls on the way from the example, for each input of which eager takes nothing but the example's own rows."""
    for place, example in enumerate(tries.bound.args):
        if tries.purse.cheap and _kept_to_rows(tries, place, seed):
            name = tries.bound.signature.inputs[place].name
            for number, args in enumerate(_walk(tries, place, example, seed)):
                yield Plan({}, "walked", seed, given=args, only=name, name=f"values=walked in {name}, call {number + 1}")


def _kept_to_rows(tries: Tries, place: int, seed: int) -> bool:
    """Return whether all rows that are drawn for an input are rows of the example."""
    example = tries.bound.args[place]
    if example.dim() < 2 or not example.numel() or example.dtype == torch.bool:
        return False
    known = {tuple(row.reshape(-1).tolist()) for row in example}
    for number in (1, 2, 3):
        try:
            made = Plan({}, "random", seed + number).args(tries.bound)[place]
        except ValueError:
            return False
        if any(tuple(row.reshape(-1).tolist()) not in known for row in made):
            return False
    return True


def _walk(tries: Tries, place: int, example: torch.Tensor, seed: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield a call each time that every row has been changed a few times since the last one."""
    chance = torch.Generator().manual_seed(seed)
    at, taken, rows = example.clone(), 0, example.shape[0]
    made = 0
    for step in range(STEPS):
        row = step % rows
        there = at.clone()
        there[row] = _changed(at[row], example, chance)
        args = (*tries.bound.args[:place], there, *tries.bound.args[place + 1 :])
        if torch.equal(there, at) or not tries.takes(Plan({}, "walked", given=args)):
            continue
        at, taken = there, taken + 1
        if taken % (3 * rows) == 0:
            yield args
            made += 1
        if made == CALLS:
            return
    if taken and not made:
        yield (*tries.bound.args[:place], at, *tries.bound.args[place + 1 :])


def _changed(row: torch.Tensor, example: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
    """Return a row with two places swapped, or one or two of its numbers moved."""
    flat = row.clone().reshape(-1)
    one, two = (int(torch.randint(0, flat.numel(), (), generator=chance)) for _ in range(2))
    kind = int(torch.randint(0, 4, (), generator=chance))
    drawn = example.reshape(-1)[torch.randint(0, example.numel(), (2,), generator=chance)]
    if kind == 0:
        flat[one], flat[two] = row.reshape(-1)[two], row.reshape(-1)[one]
    elif kind == 1:
        flat[[one, two]] = drawn
    elif kind == 2:
        flat[one] = drawn[0]
    else:
        size = 1.0 if not flat.is_floating_point() else float(example.to(torch.float64).std(correction=0)) or 1.0
        step = torch.tensor(size * (1 if int(torch.randint(0, 2, (), generator=chance)) else -1)).to(flat.dtype)
        flat[one], flat[two] = flat[one] + step, flat[two] - step
    return flat.reshape(row.shape)
