"""Beyond range: the values fed are none that the model copes with, or none that anybody feeds.

- NaN or infinity went in, and eager's own result there is none that one could go on with: what it makes of them is not
  part of its meaning. The same for NaN that eager makes of very large numbers.
- NaN or infinity went in, the model does not look for them, and the same call without them agrees: a zero of a one-hot row
  times infinity is NaN, and no row of a table is. Where the model looks for them, it means to cope, and the file must.
- Numbers of 1e30, or denormal ones, went in, and the same call brought within 1e-9 to 1e9 agrees: what differs is where one
  side ran out of float32's range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from torchferry.records import SHOWING
from torchferry.records.kinds_of_values import ABSURD, EXTREME, FAR, STRANGE
from torchferry.verify.arrays import Array, array, is_float, wide
from torchferry.verify.judge.compare import wrong as differing
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.run.both_sides import Call
from torchferry.verify.run.eager_trace import record
from torchferry.verify.trials.plans import added_masks

if TYPE_CHECKING:
    from torchferry.verify.judge.trial import Bench
    from torchferry.verify.trials.plans import TrialPlan

INSIDE = (1e-9, 1e9)
LARGE = 1e4  # instead of infinity
NOT_ASKED_FOR = "the same call agrees without NaN and infinity, which the model does not ask for"


def prove(plea: Plea) -> Proof | None:
    """Return which numbers say nothing of the model, for values that it does not cope with."""
    if plea.plan.values not in EXTREME or plea.plan.only in added_masks(plea.bench.sides.bound):
        return None
    if plea.plan.values in STRANGE and _not_this_models_business(plea):
        return Proof(list(plea.open), "an order, or attention, among numbers that are not finite", "beyond-range")
    if agrees_without_strange(plea.bench, plea.plan, plea.args):
        return Proof(list(plea.open), NOT_ASKED_FOR, "beyond-range")
    nowhere = [o & _no_number(w, plea.plan.values) for o, w in zip(plea.open, plea.want, strict=True)]
    if any(n.any() for n in nowhere):
        return Proof(nowhere, "eager itself has no number there", "beyond-range")
    if plea.plan.values in ABSURD and _agrees(plea.bench, plea.plan, _within_range(plea.args), "times 1e+09"):
        return Proof(list(plea.open), "the same call agrees once it is brought within 1e-9 to 1e9", "beyond-range")
    return None


def agrees_without_strange(bench: Bench, plan: TrialPlan, args: Call) -> bool:
    """Return whether NaN or infinity is fed, which the model does not look for, and the same call agrees without."""
    return plan.values in STRANGE and not bench.traits.looks_for_nan and _agrees(bench, plan, _without_strange(args))


def _no_number(want: Array, values: str) -> Array:
    """Return where eager's own result is none that one could go on with, given such values."""
    if not is_float(want):
        return np.zeros(want.shape, bool)
    return ~np.isfinite(wide(want)) if values in STRANGE else np.isnan(wide(want))


def _within_range(args: Call) -> Call:
    """Return the same call with its floats brought to a size that computers count in."""
    low, high = INSIDE
    gentle = []
    for arg in args:
        top = float(arg.abs().amax()) if arg.is_floating_point() and arg.numel() else 0.0
        factor = high / top if top > high else low / top if 0 < top < low else 1.0
        gentle.append((arg.double() * factor).to(arg.dtype) if factor != 1.0 else arg)
    return tuple(gentle)


def _without_strange(args: Call) -> Call:
    """Return the same call with numbers where it has none: large ones for infinities."""
    return tuple(a.nan_to_num(1.0, LARGE, -LARGE) if a.is_floating_point() else a for a in args)


def _agrees(bench: Bench, plan: TrialPlan, args: Call, values: str = "example") -> bool:
    """Return whether both sides agree on another call."""
    from torchferry.verify.judge.trial import judge  # which asks this excuse in turn, and not for such values

    outcome = judge(bench, replace(plan, values=values, given=args), args).trial.outcome
    return outcome in SHOWING or (values in FAR and outcome == "beyond-range")  # by last bits: see last_bits.py


def _not_this_models_business(plea: Plea) -> bool:
    """Return whether NaN or infinity meets attention, or an order is asked of computed numbers that are not finite."""
    traits = plea.bench.traits
    if traits.attends and plea.plan.values == "nan":
        return True
    if traits.sorting is None:
        return False
    notes = record(plea.bench.sides.bound.module, plea.args, keep=True).notes
    keys = [wide(n.keys).ravel() for n in notes if n.keys is not None and is_float(n.keys)]
    if any(np.isnan(k).any() for k in keys):
        return True
    given: list[Array] = [wide(array(a)).ravel() for a in plea.args if a.is_floating_point()]
    return any(not np.isfinite(k).all() and not any(np.array_equal(k, g, equal_nan=True) for g in given) for k in keys)


def swallows_nan(bench: Bench, want: Sequence[Array], got: Sequence[Array]) -> bool:
    """Return whether a plain function's maximum passes NaN on in eager and passes over it in the file, and no more than that."""
    if bench.traits.learned or not bench.traits.maximises:
        return False
    for w, g, allowed in zip(want, got, bench.allowed, strict=True):
        if w.shape != g.shape or not is_float(w):
            return False
        bad = differing(w, g, allowed)
        if (bad & ~(np.isnan(wide(w)) & ~np.isnan(wide(g)))).any():
            return False
    return True


class _Norm(nn.Module):
    def __init__(self, plain: bool = False, top: float = 1e4) -> None:
        super().__init__()
        self.plain, self.top = plain, top

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = x.chunk(2, -1)
        size = (one * one + two * two).sqrt() if self.plain else torch.hypot(one, two)
        return torch.cat([one / size, two.clamp(max=self.top)], -1)


class _Picked(nn.Module):
    """A row of its input, read, or by a product; or with a number for what is not finite."""

    def __init__(self, product: bool = False, row: int = 2, minds: bool = False) -> None:
        super().__init__()
        self.product, self.row, self.minds = product, row, minds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nan_to_num(x, 0.0, 0.0, 0.0) if self.minds else x
        return torch.eye(3)[self.row] @ x if self.product else x[self.row]


def right() -> Sequence[Example]:
    """Return squares that overflow in the file alone, and rows that a product of zeros and ones picks."""
    rows = torch.rand(3, 4)
    rows[1] = torch.inf
    return [Example(_Norm(), _Norm(plain=True), (torch.rand(3, 4),), "huge"), Example(_Picked(), _Picked(True), (rows,), "inf")]


def wrong() -> Sequence[Example]:
    """Return the same, with another limit on what comes out, another row, or a model that has a number for infinity."""
    rows = torch.rand(3, 4)
    rows[1] = torch.inf
    return [
        Example(_Norm(), _Norm(plain=True, top=2e4), (torch.rand(3, 4),), "huge"),
        Example(_Picked(), _Picked(True, 1), (rows,), "inf"),
        Example(_Picked(minds=True), _Picked(True), (rows,), "inf"),
    ]


EXCUSE = Excuse("range: no model is fed such numbers, or this one does not cope with them", prove, right, wrong)
