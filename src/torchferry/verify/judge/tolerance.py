"""Tolerance: how far two right implementations may be apart, measured for each output from eager's own rounding errors.

Eager is held against its float64 shadow, and against itself with every rounding moved. What that does to an output, in
units of the output's own spread, is what another kernel may do too; a number of fixed size would call a probability of a
millionth, or a signal on top of 300 degrees, whatever one likes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from torchferry import eager
from torchferry.records import Tolerance
from torchferry.verify.arrays import Array, arrays, is_float, wide
from torchferry.verify.judge.compare import spread
from torchferry.verify.judge.excuses.rounding_noise import nudged
from torchferry.verify.run.double_shadow import in_float64

TIMES = 4.0  # two kernels add up in different orders, each with its own error, and a few draws do not show the worst
UNITS = 4.0  # units in the last place that any number may be off by
RUNS = 3  # nudged runs of each call
# However much rounding was seen to do, a larger share of the spread is never waved through: it needs a proof of its own.
MOST = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
PRECISION = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def measure(
    module: torch.nn.Module, calls: Sequence[tuple[torch.Tensor, ...]], coarsest: str = "float32", lowered: str | None = None
) -> tuple[Tolerance, ...]:
    """Return what is allowed for each output.

    `coarsest` is the dtype of the fewest digits that the model computes in; `lowered`, the one that a repair let a float64
    model be computed in.
    """
    found: list[float] = []
    want: list[Array] = []
    for args in calls:
        want = arrays(eager.call(eager.fresh(module), args))
        moved = _moved(module, args, want)
        found = [max(pair) for pair in zip(found or [0.0] * len(want), moved, strict=True)]
    return tuple(_tolerance(w, f, coarsest, lowered) for w, f in zip(want, found, strict=True))


def loosest(allowed: Sequence[Tolerance]) -> Tolerance:
    """Return the one of several that allows most."""
    return max(allowed, key=lambda t: t.share + t.rtol, default=Tolerance(0.0, 0.0, "no output"))


def _moved(module: torch.nn.Module, args: tuple[torch.Tensor, ...], want: Sequence[Array]) -> list[float]:
    """Return how far rounding moves each output of one call, in units of its spread."""
    large = eager.weight_bytes(module) > eager.WHOLE_COPY_BYTES  # a float64 copy of every weight would fill the memory
    runs = [nudged(module, args, seed) for seed in range(1 if large else RUNS)]
    truth = None if large else in_float64(module, args)
    others = [r for r in (*runs, truth) if r is not None and len(r) == len(want)]
    return [max((_apart(w, r[n]) for r in others), default=0.0) for n, w in enumerate(want)]


def _apart(want: Array, other: Array) -> float:
    if not is_float(want) or want.shape != other.shape or not want.size:
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(wide(want) - wide(other))
    usual = float(np.max(spread(want)))
    # a choice that flips moves single numbers by any amount: what nearly all are moved by is rounding
    apart = apart[np.isfinite(apart)]
    return float(np.quantile(apart, 0.95)) / usual if usual > 0 and apart.size else 0.0


def _tolerance(want: Array, moved: float, coarsest: str, lowered: str | None) -> Tolerance:
    dtype = lowered or want.dtype.name
    if dtype not in PRECISION:
        return Tolerance(0.0, 0.0, "whole numbers are equal or not")
    share = min(max(TIMES * moved, PRECISION[dtype]), max(MOST[dtype], MOST[coarsest] if dtype != "float64" else 0.0))
    why = f"rounding moves {moved:.1g} of the spread of eager's own {dtype} result" if moved else f"{dtype}, nothing is rounded"
    return Tolerance(UNITS * PRECISION[dtype], share, why)
