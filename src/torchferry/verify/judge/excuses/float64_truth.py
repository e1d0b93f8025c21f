"""Float64 truth: the file is as near to what eager would give without rounding as eager itself is.

Eager may be far off: float16 squares overflow, a matrix form of distances cancels, a sum of a million numbers drifts. A file
that is no further from the truth, in size and on average, is no worse than eager; one that differs from eager as much but in
another way is further from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from torchferry import eager
from torchferry.verify.arrays import Array, is_float, wide
from torchferry.verify.judge.compare import allowance
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.run.double_shadow import in_float64

FACTOR = 2.0  # the file may be this much further from float64 than eager is
LEAN = 0.5  # of the usual error: by so much errors may lean to one side, as those of one sum do together
LIMITS = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": float(np.finfo(np.float32).max)}


def prove(plea: Plea) -> Proof | None:
    """Return which numbers are as near to the truth as eager's of about their size are."""
    module = plea.bench.sides.bound.module
    floats = [n for n, o in enumerate(plea.open) if o.any() and is_float(plea.want[n])]
    if not floats or plea.bench.traits.exact or eager.weight_bytes(module) > eager.WHOLE_COPY_BYTES:
        return None
    truth = in_float64(module, plea.args)
    if truth is None:
        return None
    found = [np.zeros(o.shape, bool) for o in plea.open]
    for n in floats:
        if truth[n].shape == plea.want[n].shape:
            found[n] = plea.open[n] & _as_near(plea, n, truth[n])
    return Proof(found, "the file is as near to a float64 run as eager is", "ill-conditioned")


def _as_near(plea: Plea, n: int, truth: Array) -> Array:
    want, got, slack = wide(plea.want[n]), wide(plea.got[n]), allowance(truth, plea.bench.allowed[n])
    with np.errstate(invalid="ignore", over="ignore"):
        away, its_away = want - truth, got - truth
    own, its = np.abs(away), np.abs(its_away)
    finite = np.isfinite(own) & np.isfinite(its)
    reach = FACTOR * _worst_of_its_size(np.where(finite, own, 0.0), truth) + slack
    near = finite & (its <= reach) & _no_worse_on_average(away[finite], its_away[finite], slack, finite)
    # eager ran out of its range: then the file has the truth itself, if that is in range where eager computed it
    overflowed = ~np.isfinite(want) & np.isfinite(truth) & (np.abs(truth) <= LIMITS[plea.bench.traits.coarsest])
    # nothing divided by nothing: eager's number is made of its rounding errors, and no other is any righter
    undefined = np.isnan(truth) & np.isfinite(want)
    return near | (overflowed & (its <= slack)) | undefined


def _no_worse_on_average(own: Array, its: Array, slack: Array, finite: Array) -> bool:
    """Return whether the file's errors are no larger as a whole, and lean to one side no more than eager's may."""
    if not own.size:
        return False
    usual = np.sqrt((own**2).mean())
    room = float(np.broadcast_to(slack, finite.shape)[finite].mean())
    size = np.sqrt((its**2).mean()) <= FACTOR * usual + room
    lean = abs(its.mean()) <= FACTOR * abs(own.mean()) + LEAN * usual + room
    return bool(size and lean)


def _worst_of_its_size(errors: Array, truth: Array) -> Array:
    """Return, for each number, the largest error among those of about its size: one lucky number proves nothing.

    Errors of far larger numbers do not count, lest a huge one excuse all others.
    """
    with np.errstate(divide="ignore"):
        decades = np.clip(np.floor(np.log10(np.abs(np.nan_to_num(truth)) + 1e-30)), -30, 40).astype(int)
    worst = {int(d): float(errors[decades == d].max()) for d in np.unique(decades)}
    near = {d: max(worst.get(d + step, 0.0) for step in (-1, 0, 1)) for d in worst}
    return np.vectorize(near.__getitem__, otypes=[float])(decades)


class _Squares(nn.Module):
    """Norms whose squares overflow in float16."""

    def __init__(self, gain: float = 1.0, wide: bool = False) -> None:
        super().__init__()
        self.gain, self.wide = gain, wide

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        big = x.float() if self.wide else x
        return ((big * big * 0.01).sum(-1) * self.gain).to(x.dtype)


def right() -> Sequence[Example]:
    """Return a file that computes in float32 what overflows in eager."""
    return [Example(_Squares(), _Squares(wide=True), (300 * torch.randn(4, 3).half(),))]


def wrong() -> Sequence[Example]:
    """Return one that does not overflow either, and gives twice as much."""
    return [Example(_Squares(), _Squares(gain=2.0, wide=True), (300 * torch.randn(4, 3).half(),))]


EXCUSE = Excuse("truth: the file is as near to a float64 run as eager is", prove, right, wrong)
