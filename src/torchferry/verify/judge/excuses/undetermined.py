"""Undetermined: the number hangs on an answer that a decomposition leaves open, as eager's own does.

Of equal or vanishing singular values the vectors are any basis of a space, and which one a kernel gives is decided by the last
bits that went in. So these bits, and no others, are moved: what then takes any value between two, in eager itself, is no
property of the model. Such numbers are not compared, and count as excused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.verify.arrays import Array, arrays, is_float, wide
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.judge.excuses.rounding_noise import nudge
from torchferry.verify.run.eager_trace import op_name

DECOMPOSING = ("_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_qr", "linalg_lstsq", "geqrf")
RUNS = 16
BEYOND = 0.5  # of what the runs span: a few of them do not show the ends
LEAST = 1e-2  # of the output's spread: what moves less is determined, and must agree


def prove(plea: Plea) -> Proof | None:
    """Return which numbers lie among those that eager gives if what goes into a decomposition is moved by its last bits."""
    if not any(n in DECOMPOSING for n in plea.bench.traits.ops) or not any(o.any() for o in plea.open):
        return None
    runs = [r for seed in range(RUNS) if len(r := _shaken(plea, seed)) == len(plea.want)]
    found = [_among(plea, n, [r[n] for r in runs]) for n in range(len(plea.want))]
    return Proof(found, "a decomposition leaves these numbers open, in eager too", "undetermined")


def _shaken(plea: Plea, seed: int) -> list[Array]:
    try:
        with _Shaken(torch.Generator().manual_seed(seed)):
            return arrays(eager.call(eager.fresh(plea.bench.sides.bound.module), plea.args))
    except Exception:  # a decomposition that does not converge, or whatever the user's forward makes of it
        return []


class _Shaken(Watching):
    """While it is on, the matrices that are decomposed are moved by their last bits, those of their largest number."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if op_name(func) in DECOMPOSING and args[0].is_floating_point() and args[0].numel():
            matrix = args[0]
            noise = nudge(torch.ones_like(matrix), self._generator, 1.0) - 1
            noise = noise + noise.mT if matrix.shape[-1] == matrix.shape[-2] else noise  # symmetric ones stay so
            scale = (
                matrix.abs()
                .amax((-2, -1), keepdim=True)
                .clamp(min=torch.finfo(matrix.dtype).tiny / torch.finfo(matrix.dtype).eps)
            )
            args = (matrix + noise * scale, *args[1:])
        return func(*args, **kwargs)


def _among(plea: Plea, n: int, runs: Sequence[Array]) -> Array:
    want, got = plea.want[n], plea.got[n]
    if not is_float(want) or not runs or any(r.shape != want.shape for r in runs):
        return np.zeros(want.shape, bool)
    seen = np.stack([wide(r) for r in (want, *runs)])
    low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
    span = high - low
    usual = plea.bench.usual[n] if n < len(plea.bench.usual) else 0.0
    among = (wide(got) >= low - BEYOND * span) & (wide(got) <= high + BEYOND * span)
    return np.asarray(plea.open[n] & among & (span > LEAST * usual))


class _Projection(nn.Module):
    """The projection on the largest eigenvector of a 2 x 2 matrix; of a multiple of the identity any vector is one."""

    def __init__(self, written_out: bool = False, largest: bool = True) -> None:
        super().__init__()
        self.written_out, self.largest = written_out, largest

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.written_out:
            vector = torch.linalg.eigh(x).eigenvectors[..., -1:]
            return vector @ vector.mT
        half, off = (x[..., 0, 0] - x[..., 1, 1]) / 2, x[..., 1, 0]  # eigh reads the lower half
        half, off = (half, off) if self.largest else (-half, -off)
        size = (half * half + off * off).sqrt()
        slope = torch.where(size > 0, off / (size + half.abs()), 1.0)
        whole = 1 + slope * slope
        long, cross, short = 1 / whole, slope / whole, slope * slope / whole
        first, last = torch.where(half >= 0, long, short), torch.where(half >= 0, short, long)
        return torch.stack([first, cross, cross, last], -1).reshape(x.shape)


def _call() -> tuple[torch.Tensor]:
    x = torch.randn(4, 2, 2)
    x = x + x.mT
    x[1] = 2 * torch.eye(2)
    return (x,)


def right() -> Sequence[Example]:
    """Return a formula that takes the middle where any answer is one."""
    return [Example(_Projection(), _Projection(True), _call())]


def wrong() -> Sequence[Example]:
    """Return the other eigenvector."""
    return [Example(_Projection(), _Projection(True, largest=False), _call())]


EXCUSE = Excuse("undetermined: a decomposition leaves the number open, in eager too", prove, right, wrong)
