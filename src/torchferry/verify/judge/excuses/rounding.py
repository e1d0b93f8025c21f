"""Rounding: the file's number is one that eager itself gives when its roundings are moved.

No two right kernels give the same last bits. What counts is what nudged runs of eager were seen to give at that very
element, and no more of it than is little beside the output's spread: a number that is further off has to be followed step by
step, wherever rounding may move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import nn

from torchferry import eager
from torchferry.verify.arrays import Array, is_float, wide
from torchferry.verify.judge.compare import allowance, spread
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.judge.excuses.rounding_noise import nudged, summed_in_turn

RUNS = 6  # nudged runs that show how much rounding alone can move an output
MORE = 24  # and so many where most of what differs is explained by then: behind a clamp a nudge shows in half of the runs
TIMES = 8.0  # the file may be this much further off than the furthest of a few runs
FEW, FAR = 3, 100.0  # where most lies further off than so many times what a few runs have moved, no more are made
ON_AVERAGE = 4.0  # and over all numbers of an output
LARGE_NUDGE = 8.0  # units in the last place: about what a few sums in another order amount to
# of the spread: what is further off than this has to be followed step by step, however far a nudge moves it
NARROW = {"float64": 1e-6, "float32": 2e-3, "float16": 5e-2, "bfloat16": 2e-1}
NARROW_LARGE = 1e-2  # for a model that is too large to be followed step by step


def prove(plea: Plea) -> Proof | None:
    """Return which numbers are within what nudged runs of eager give there."""
    traits = plea.bench.traits
    if traits.exact:  # every operator is exactly rounded: there is one right answer
        return None
    once = partial(nudged, plea.bench.sides.bound.module, plea.args)
    seen = [_Seen(plea, n) for n in range(len(plea.want))]
    in_turn = summed_in_turn(plea.bench.sides.bound.module, plea.args)
    if len(in_turn) == len(plea.want):
        for n, s in enumerate(seen):
            s.hits(in_turn[n])
    for seed in range(MORE):
        runs = [once(seed), once(seed, LARGE_NUDGE)] if any(s.whole for s in seen) else [once(seed)]
        for run in runs:
            if len(run) == len(plea.want):
                seen = [s.with_run(run[n]) for n, s in enumerate(seen)]
        if seed + 1 == FEW and all(s.hopeless for s in seen):
            return None
        found = [s.explained() for s in seen]
        left = sum(int((o & ~f).sum()) for o, f in zip(plea.open, found, strict=True))
        if not left or (seed + 1 >= RUNS and 2 * left > sum(int(o.sum()) for o in plea.open)):
            break
    return Proof(found, "within what eager gives when its roundings are moved", "ill-conditioned")


class _Seen:
    """What nudged runs gave for one output."""

    def __init__(self, plea: Plea, n: int) -> None:
        self._want, self._got, self._open = plea.want[n], plea.got[n], plea.open[n]
        self.whole = not is_float(self._want) and bool(self._open.any())
        self._moved = np.zeros(self._want.shape)
        self._hit = np.zeros(self._want.shape, bool)
        self._square, self._runs = 0.0, 0
        self._slack = allowance(self._want, plea.bench.allowed[n]) if is_float(self._want) else 0.0
        large = eager.weight_bytes(plea.bench.sides.bound.module) > eager.WHOLE_COPY_BYTES
        self._narrow = max(NARROW.get(self._want.dtype.name, 0.0), NARROW_LARGE if large else 0.0)
        usual = plea.bench.usual[n] if n < len(plea.bench.usual) else 0.0  # on its tail a bounded function hardly varies
        self._spread = max(usual, float(np.max(spread(self._want)))) if is_float(self._want) else 0.0

    def hits(self, run: Array) -> None:
        """Note where the file has just what a run gave that rounds as a right kernel does: how far that is off is no matter."""
        if run.shape == self._want.shape and is_float(self._want):
            with np.errstate(invalid="ignore", over="ignore"):
                self._hit |= np.abs(wide(run) - wide(self._got)) <= self._slack

    def with_run(self, run: Array) -> _Seen:
        """Return the same with one more run."""
        if run.shape == self._want.shape:
            if is_float(self._want):
                with np.errstate(invalid="ignore", over="ignore"):
                    apart = np.abs(wide(run) - wide(self._want))
                self._moved = np.fmax(self._moved, apart)
                self._square, self._runs = self._square + _mean_square(apart), self._runs + 1
            else:
                self._hit |= run == self._got
        return self

    @property
    def hopeless(self) -> bool:
        """Whether most of what differs lies so far off that no number of runs will come near; nothing differs counts too."""
        if self.whole or not self._open.any():
            return not self.whole
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(wide(self._got) - wide(self._want))
        return bool((apart > self._slack + FAR * np.nan_to_num(self._moved, posinf=np.inf))[self._open].mean() > 0.5)

    def explained(self) -> Array:
        """Return which elements are within reach; a whole number, only if a nudged run gave that very number."""
        if not is_float(self._want):
            return self._hit & self._open
        moved, most = np.nan_to_num(self._moved, posinf=0.0), self._narrow * self._spread
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(wide(self._got) - wide(self._want))
        usual = (self._square / max(1, self._runs)) ** 0.5
        if _mean_square(apart) ** 0.5 > ON_AVERAGE * usual + float(np.mean(self._slack)) / 2:
            return self._open & self._hit  # one number may be far off by bad luck, and not all of them
        return self._open & (self._hit | (apart <= self._slack + np.minimum(TIMES * moved, most)))


def _mean_square(apart: Array) -> float:
    finite = apart[np.isfinite(apart)]
    return float((finite**2).mean()) if finite.size else 0.0


class _Tail(nn.Module):
    """Numbers on the tail of a bounded function: a kernel is right there to a unit of the whole range, and no better."""

    def __init__(self, least: float = 0.0) -> None:
        super().__init__()
        self.least = least

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x).clamp(min=self.least) * 3


def _call() -> tuple[torch.Tensor]:
    return (torch.randn(8, 3) - torch.tensor([0.0, 1.0, 17.0]),)


def right() -> Sequence[Example]:
    """Return the same function by another kernel."""
    return [Example(_Tail(), _Tail(), _call())]


def wrong() -> Sequence[Example]:
    """Return one that never falls below a millionth."""
    return [Example(_Tail(), _Tail(1e-6), _call())]


EXCUSE = Excuse("rounding: eager itself gives such numbers when its roundings are moved", prove, right, wrong)
