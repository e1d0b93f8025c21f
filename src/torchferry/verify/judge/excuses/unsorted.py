"""Unsorted: the number hangs on a search by halving in numbers that are not sorted.

`searchsorted` and `bucketize` take their numbers to be sorted. In others they find whatever the way of halving leads to, and
torch promises nothing of it. That numbers are not sorted is seen in eager's own run; that an output hangs on what is found among
them, by running eager with other places put in. What is found in sorted numbers is determined, and has to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.verify.arrays import Array, arrays
from torchferry.verify.judge.compare import wrong as differing
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.run.eager_trace import op_name

SEARCHING = {"searchsorted": 0, "bucketize": 1}  # and which argument is searched
RUNS = 4  # with other places put in; one number may be the same in a few of them


def prove(plea: Plea) -> Proof | None:
    """Return which numbers change if other places are found in what is not sorted."""
    if plea.bench.traits.ops.isdisjoint(SEARCHING) or not any(o.any() for o in plea.open):
        return None
    runs = [r for seed in range(RUNS) if len(r := _elsewhere(plea, seed)) == len(plea.want)]
    found = [_moved(plea, n, [r[n] for r in runs]) for n in range(len(plea.want))]
    return Proof(found, "a search by halving in numbers that are not sorted", "undetermined")


def _elsewhere(plea: Plea, seed: int) -> list[Array]:
    try:
        with _Elsewhere(torch.Generator().manual_seed(seed)):
            return arrays(eager.call(eager.fresh(plea.bench.sides.bound.module), plea.args))
    except Exception:  # the user's forward may refuse such places; torch.cond and its like do not bear being watched
        return []


class _Elsewhere(Watching):
    """While it is on, a search in numbers that are not sorted finds any place of theirs."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        place = SEARCHING.get(op_name(func))
        if place is None or not isinstance(args[place], torch.Tensor):
            return out
        numbers, order = args[place], kwargs.get("sorter")
        unsorted = ~is_sorted(numbers if order is None else numbers.gather(-1, order))
        if unsorted.dim():  # a row of numbers for each row of what is looked for
            unsorted = unsorted[..., None]
        anywhere = torch.randint(0, numbers.shape[-1] + 1, out.shape, generator=self._generator)
        return torch.where(unsorted, anywhere.to(out.dtype), out)


def is_sorted(numbers: torch.Tensor) -> torch.Tensor:
    """Return which rows never fall, and have no NaN."""
    return ((numbers[..., 1:] >= numbers[..., :-1]) & ~numbers[..., :-1].isnan()).all(-1)


def _moved(plea: Plea, n: int, runs: Sequence[Array]) -> Array:
    want, allowed = plea.want[n], plea.bench.allowed[n]
    changed = [differing(want, r, allowed) for r in runs if r.shape == want.shape]
    return np.asarray(plea.open[n] & np.any(changed, axis=0)) if changed else np.zeros(want.shape, bool)


class _Cumulated(nn.Module):
    """Places among sums that rise, unless a term is negative: by halving, or counted."""

    def __init__(self, counted: bool = False, right: bool = False, guarded: bool = False) -> None:
        super().__init__()
        self.counted, self.right, self.guarded = counted, right, guarded

    def forward(self, terms: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        sums = terms.cumsum(-1)
        if self.counted:
            further = sums[:, None] > x[..., None] if self.right else sums[:, None] >= x[..., None]
            found = (~further).sum(-1)  # NaN is further than all
        else:
            found = torch.searchsorted(sums, x)
        return torch.where((terms < 0).any(-1, keepdim=True), -1, found) if self.guarded else found


def _call() -> tuple[torch.Tensor, torch.Tensor]:
    terms = torch.ones(12, 6)
    terms[1] = torch.tensor([3.0, -2, 3, -2, 3, -2])
    return terms, torch.arange(5.0).expand(12, 5) % 7


def right() -> Sequence[Example]:
    """Return a count of what is smaller: the same in sorted numbers, and another in others."""
    return [Example(_Cumulated(), _Cumulated(counted=True), _call())]


def wrong() -> Sequence[Example]:
    """Return a count of what is not larger, and one that gives numbers that are not sorted no -1 where the model does."""
    guarded = Example(_Cumulated(guarded=True), _Cumulated(counted=True), _call())
    return [Example(_Cumulated(), _Cumulated(counted=True, right=True), _call()), guarded]


EXCUSE = Excuse("unsorted: the number hangs on a search in numbers that are not sorted", prove, right, wrong)
