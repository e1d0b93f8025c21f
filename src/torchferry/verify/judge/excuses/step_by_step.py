"""Step by step: from eager's own steps the file arrives at eager's outputs, so that rounding, or a tie, is all there is.

This speaks for models that make anything of a last bit: chaotic recurrences, finite differences, rounded and chosen numbers.
`run/replay.py` says how it is done and why it proves something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import torch
from torch import nn

from torchferry.verify.arrays import Array, is_float, wide
from torchferry.verify.judge.compare import wrong as differing
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.judge.excuses.float64_truth import LIMITS
from torchferry.verify.judge.excuses.rounding_noise import nudged
from torchferry.verify.run.replay import Replayed, Tie, replays

OFTEN = 8  # trials that were followed step by step; after them it is enough to be within reach of rounding
RUNS = 12  # nudged runs of eager, where onnxruntime's optimiser moves the result too


def prove(plea: Plea) -> Proof | None:
    """Return which numbers the file gives too, from eager's own steps."""
    runs = cache(partial(_nudged, plea))
    if len(plea.bench.followed) >= OFTEN:
        within = [_within_reach(plea, n, runs()) for n in range(len(plea.want))]
        if not any((o & ~w).any() for o, w in zip(plea.open, within, strict=True)):
            return Proof(within, "within reach of rounding, in steps that were shown before", "ill-conditioned")
    found, ties = [np.zeros(w.shape, bool) for w in plea.want], list[Tie]()
    for replayed in replays(plea.bench.sides, plea.args):
        if len(replayed.outputs) == len(plea.want):
            found = [f | _arrived(plea, n, replayed, runs) for n, f in enumerate(found)]
            ties += replayed.ties
        if not any((o & ~f).any() for o, f in zip(plea.open, found, strict=True)):
            break
    if ties:
        place = ties[0].place
        harmless = all(t.place.op == "topk" or t.rounded for t in ties) or _only_places(plea, found)
        return Proof(found, f"equal keys come in another order at {place}", "tie-order", place, harmless)
    if not any((o & ~f).any() for o, f in zip(plea.open, found, strict=True)):
        plea.bench.followed.append(plea.plan.title)
    return Proof(found, "from eager's own steps the file gives the same", "ill-conditioned")


def _arrived(plea: Plea, n: int, replayed: Replayed, runs: Callable[[], Sequence[Sequence[Array]]]) -> Array:
    """Return where one output is eager's at the end of the replay, and the file as it runs is the one that was replayed."""
    want, got, end, own = replayed.eager[n], plea.got[n], replayed.outputs[n], replayed.own[n]
    if not plea.open[n].any() or want.shape != end.shape or want.dtype != end.dtype or want.shape != own.shape:
        return np.zeros(want.shape, bool)
    same = ~differing(want, end, plea.bench.allowed[n])
    as_it_runs = ~differing(own, got, plea.bench.allowed[n])
    if not as_it_runs[plea.open[n]].all():  # what onnxruntime's optimiser changed must be rounding too
        as_it_runs |= _within_reach(plea, n, runs())
    return np.asarray(plea.open[n] & same & as_it_runs & ~_overflowed(want, got, LIMITS[plea.bench.traits.coarsest]))


def _overflowed(want: Array, got: Array, limit: float) -> Array:
    """Return where eager ran out of its range and the file goes on beyond it: that is no rounding."""
    if not is_float(want):
        return np.zeros(want.shape, bool)
    return np.isinf(wide(want)) & np.isfinite(wide(got)) & (np.abs(wide(got)) > limit)


def _nudged(plea: Plea) -> list[list[Array]]:
    """Return the outputs of runs of eager with its roundings moved."""
    runs = [nudged(plea.bench.sides.bound.module, plea.args, seed) for seed in range(RUNS)]
    return [r for r in runs if len(r) == len(plea.want)]


def _within_reach(plea: Plea, n: int, runs: Sequence[Sequence[Array]]) -> Array:
    """Return where the file's number lies between those of nudged runs of eager, or is one of them."""
    want, got = plea.want[n], plea.got[n]
    seen = [r[n] for r in runs if r[n].shape == want.shape]
    if not seen:
        return np.zeros(want.shape, bool)
    hit = np.any([s == got for s in seen], axis=0)
    if want.dtype.kind in "b":
        return np.asarray(hit)
    low, high = np.min([want, *seen], axis=0), np.max([want, *seen], axis=0)
    room = wide(high) - wide(low)
    between = (wide(got) >= wide(low) - room) & (wide(got) <= wide(high) + room)
    return np.asarray(hit | between)


def _only_places(plea: Plea, found: Sequence[Array]) -> bool:
    """Return whether all that differs are places themselves: any order of equals is a right answer to that question."""
    return all(not is_float(w) and w.dtype.kind in "iu" for w, f in zip(plea.want, found, strict=True) if f.any()) and bool(
        plea.bench.traits.sorts_last
    )


class _Chaos(nn.Module):
    def __init__(self, turned: bool = False, gain: float = 1.0) -> None:
        super().__init__()
        self.turned, self.gain = turned, gain
        self.weight = nn.Parameter(4 * torch.randn(16, 16, generator=torch.Generator().manual_seed(0)) / 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.tanh(self.gain * ((self.weight.T @ x.T).T if self.turned else x @ self.weight))
        return x


class _Slope(nn.Module):
    """A finite difference: what is left of two numbers that are nearly equal."""

    def __init__(self, turned: bool = False, seed: int = 0) -> None:
        super().__init__()
        self.turned = turned
        self.weight = nn.Parameter(torch.randn(64, 4, generator=torch.Generator().manual_seed(seed)) / 8)

    def at(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh((self.weight.T @ x.T).T if self.turned else x @ self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.at(x + 1e-6) - self.at(x)) / 1e-6


class _Ranked(nn.Module):
    """Rows in the order of their scores, of which many are equal."""

    def __init__(self, largest: bool = True, backwards: bool = False) -> None:
        super().__init__()
        self.largest, self.backwards = largest, backwards

    def forward(self, scores: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        order = scores.topk(8, largest=self.largest).indices
        return rows[order].flip(0) if self.backwards else rows[order]


class _Likely(nn.Module):
    """The likeliest of many that are hardly likely: there the runtime's sigmoid is right to a unit or two of its range."""

    def __init__(self, least: float = 0.0) -> None:
        super().__init__()
        self.least = least

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(scores).clamp(min=self.least).topk(8).indices % 64


def right() -> Sequence[Example]:
    """Return chaos and cancellation, computed in another order, and places of probabilities that are nearly equal."""
    x, scores = torch.randn(6, 64), torch.rand(6, 512) / 16 - 12.1
    return [
        Example(_Chaos(), _Chaos(turned=True), (x[:, :16],)),
        Example(_Slope(), _Slope(turned=True), (x,)),
        Example(_Likely(), _Likely(), (scores,)),
    ]


def wrong() -> Sequence[Example]:
    """Return chaos of another strength, the slope of another function, rows in reverse order, and a floor under odds."""
    scores = torch.rand(6, 512) / 16 - 12.1
    x, ranked = torch.randn(6, 64), (torch.randint(0, 3, (24,)).float(), torch.randn(24, 2))
    return [
        Example(_Chaos(), _Chaos(gain=1.01), (x[:, :16],)),
        Example(_Slope(), _Slope(seed=1), (x,)),
        Example(_Ranked(), _Ranked(largest=False), ranked),
        Example(_Ranked(), _Ranked(backwards=True), ranked),
        Example(_Likely(), _Likely(least=7e-6), (scores,)),
    ]


EXCUSE = Excuse("steps: from eager's own steps the file arrives at eager's outputs", prove, right, wrong)
