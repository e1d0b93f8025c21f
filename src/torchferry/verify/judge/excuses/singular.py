"""Singular: the number hangs on the inverse of a matrix that is singular to its last bits.

Such a matrix has no inverse. What a kernel gives for it, huge numbers or none, is made of rounding errors alone. That a matrix
is of this sort is seen in float64; that a number hangs on its inverse, by running eager with NaN in the place of that inverse.
Where a model puts something else in the place of such an answer, the number is determined, and has to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.verify.arrays import Array, arrays, is_float
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.run.eager_trace import op_name

INVERTING = ("linalg_inv_ex", "_linalg_solve_ex", "_linalg_slogdet")


def prove(plea: Plea) -> Proof | None:
    """Return which numbers are NaN if the inverses of singular matrices are."""
    if not any(n in INVERTING for n in plea.bench.traits.ops) or not any(o.any() for o in plea.open):
        return None
    run = _without_such_inverses(plea)
    if len(run) != len(plea.want):
        return None
    found = [_hanging(*each) for each in zip(plea.want, run, plea.open, strict=True)]
    return Proof(found, "a matrix is singular to its last bits, and has no inverse", "undetermined")


def _without_such_inverses(plea: Plea) -> list[Array]:
    try:
        with _Marked():
            return arrays(eager.call(eager.fresh(plea.bench.sides.bound.module), plea.args))
    except Exception:  # the user's forward may refuse NaN; torch.cond and its like do not bear being watched
        return []


class _Marked(Watching):
    """While it is on, what is computed of the inverse of a singular matrix is NaN."""

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        if op_name(func) not in INVERTING or not args[0].numel():
            return out
        singular = _is_singular(args[0])
        # of what else such an operator gives, its factors and the word on whether it failed, nothing is an inverse
        count = 2 if op_name(func) == "_linalg_slogdet" else 1
        return (*(_marked(o, singular) for o in out[:count]), *out[count:])


def _is_singular(matrix: torch.Tensor) -> torch.Tensor:
    sizes = torch.linalg.svdvals(torch.nan_to_num(matrix.detach().to(torch.promote_types(matrix.dtype, torch.float64))))
    least = matrix.shape[-1] * torch.finfo(matrix.dtype).eps
    return (sizes[..., -1] <= least * sizes[..., 0]) & matrix.isfinite().all(-1).all(-1)


def _marked(out: torch.Tensor, singular: torch.Tensor) -> torch.Tensor:
    if out.shape[: singular.dim()] != singular.shape:  # one matrix for many right sides
        return out
    return out.masked_fill(singular.reshape(*singular.shape, *[1] * (out.dim() - singular.dim())), torch.nan)


def _hanging(want: Array, run: Array, still_open: Array) -> Array:
    if not is_float(want) or run.shape != want.shape:
        return np.zeros(want.shape, bool)
    return np.asarray(still_open & np.isnan(run))


class _Inverse(nn.Module):
    """The inverse of a 2 x 2 matrix, for which a singular one may be given something else."""

    def __init__(self, written_out: bool = False, guarded: bool = False, swapped: bool = False) -> None:
        super().__init__()
        self.written_out, self.guarded, self.swapped = written_out, guarded, swapped

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b, c, d = x[..., 0, 0], x[..., 0, 1], x[..., 1, 0], x[..., 1, 1]
        det = a * d - b * c
        if self.written_out:
            b, c = (c, b) if self.swapped else (b, c)
            inverse = torch.stack([d / det, -b / det, -c / det, a / det], -1).reshape(x.shape)
        else:
            inverse = torch.linalg.inv_ex(x).inverse
        return torch.where((det == 0)[..., None, None], 0.0, inverse) if self.guarded else inverse


def _call() -> tuple[torch.Tensor]:
    x = torch.randn(4, 2, 2) + 2 * torch.eye(2)
    x[1] = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
    return (x,)


def right() -> Sequence[Example]:
    """Return a formula that divides by zero where elimination does, or gives huge numbers."""
    return [Example(_Inverse(), _Inverse(True), _call())]


def wrong() -> Sequence[Example]:
    """Return the transposed inverse, and one that gives a singular matrix no zeros where the model does."""
    guarded = Example(_Inverse(guarded=True), _Inverse(True), _call())
    return [Example(_Inverse(), _Inverse(True, swapped=True), _call()), guarded]


EXCUSE = Excuse("singular: the number hangs on the inverse of a matrix that has none", prove, right, wrong)
