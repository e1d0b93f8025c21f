"""Last bits of what goes in: numbers so large that neighbours in their own type lead anywhere.

Of a number of a billion float32 knows no fractions, so what is left of an angle or an hour after whole turns are taken off
is made of bits that it does not have. That it is so is shown by eager: its own number moves by as much as its numbers vary
at all, if the very inputs are moved by a last bit. How far a file may be off there is what its inputs' last bits do to it.
This speaks for calls that go out to the ends of what is tried, and for no others: such numbers are not compared there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn

from torchferry.records import Fault
from torchferry.records.kinds_of_values import FAR
from torchferry.verify.arrays import Array, is_float, wide
from torchferry.verify.judge.compare import spread
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.judge.excuses.rounding_noise import nudge
from torchferry.verify.run.both_sides import Call

RUNS = 6  # with other last bits
MUCH = 0.1  # of how much an output varies: what moves as far as that means nothing
TIMES = 4.0  # further off than the furthest of them


def prove(plea: Plea) -> Proof | None:
    """Return which numbers mean nothing in eager, and are off by no more than last bits of what goes in make them."""
    if plea.plan.values not in FAR or not any(o.any() for o in plea.open):
        return None
    sides = plea.bench.sides
    own = [_reach(plea.want, [sides.eager(moved) for moved in _moved(plea)])]
    own += [_reach(plea.got, [sides.run(moved) for moved in _moved(plea)])] if any(r is not None for r in own[0]) else []
    found = [_explained(plea, n, [r[n] for r in own]) for n in range(len(plea.want))]
    return Proof(found, "what goes in is so large that its last bits decide", "beyond-range")


def _moved(plea: Plea) -> Iterator[Call]:
    """Yield the call with the last bits of what goes in moved."""
    for seed in range(RUNS):
        generator = torch.Generator().manual_seed(seed)
        yield tuple(nudge(a, generator, 1.0) if a.is_floating_point() else a for a in plea.args)


def _reach(usual: Sequence[Array], runs: Sequence[list[Array] | Fault]) -> list[Array | None]:
    """Return how far runs are from what is usual, for each output of fractions that has its shape in all of them."""
    found: list[Array | None] = []
    for n, one in enumerate(usual):
        others = [r[n] for r in runs if not isinstance(r, Fault) and len(r) == len(usual) and r[n].shape == one.shape]
        with np.errstate(invalid="ignore", over="ignore"):
            apart = [np.abs(wide(o) - wide(one)) for o in others if is_float(one)]
        found.append(np.fmax.reduce(apart) if apart else None)
    return found


def _explained(plea: Plea, n: int, reaches: Sequence[Array | None]) -> Array:
    want, known = plea.want[n], [r for r in reaches if r is not None]
    if not known or reaches[0] is None:
        return np.zeros(want.shape, bool)
    anywhere = reaches[0] >= MUCH * max(plea.bench.usual[n], float(np.max(spread(want))))
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(wide(plea.got[n]) - wide(want)) <= TIMES * np.fmax.reduce(known)
    return np.asarray(plea.open[n] & anywhere & near)


class _Turn(nn.Module):
    """What is left of an angle after whole turns."""

    def __init__(self, written_out: bool = False, off: float = 0.0) -> None:
        super().__init__()
        self.written_out, self.off = written_out, off

    def forward(self, angle: torch.Tensor) -> torch.Tensor:
        left = angle - (angle / 360).floor() * 360 if self.written_out else torch.remainder(angle, 360.0)
        return torch.where(angle.abs() > 1e6, left + self.off, left) if self.off else left


def right() -> Sequence[Example]:
    """Return a remainder by a division, which a billion leaves no bits for."""
    return [Example(_Turn(), _Turn(True), (30 + 100 * torch.rand(4, 6),), "times 1e+09")]


def wrong() -> Sequence[Example]:
    """Return the same, and far off besides: further than any last bit leads."""
    return [Example(_Turn(), _Turn(True, off=1e6), (30 + 100 * torch.rand(4, 6),), "times 1e+09")]


EXCUSE = Excuse("last bits: what goes in is so large that its last bits decide", prove, right, wrong)
