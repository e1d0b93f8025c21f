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
from torchferry.verify.arrays import PRECISION, Array, arrays, is_float, wide
from torchferry.verify.judge.compare import ENOUGH_ROWS, spread
from torchferry.verify.judge.excuses.rounding_noise import nudged
from torchferry.verify.run.double_shadow import in_float64

TIMES = 4.0  # two kernels add up in different orders, each with its own error, and a few draws do not show the worst
UNITS = 4.0  # units in the last place that any number may be off by
RUNS = 3  # nudged runs of each call
MOST_COLUMNS, UNLIKE = 64, 1e-3  # places on the last axis that may be of unlike kinds, by a spread so much smaller
# However much rounding was seen to do, a larger share of the spread is never waved through: it needs a proof of its own.
MOST = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
LEAST = {"float16": 2.0**-24}  # the unit of its smallest numbers, where that is no nothing


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


def columns(calls: Sequence[Sequence[Array]]) -> tuple[tuple[float, ...], ...]:
    """Return, for each output of several calls, the spread of each place on the last axis as a share of the whole's.

    () where the places are of one kind, as they mostly are, or the calls do not tell.
    """
    found = []
    for outputs in zip(*calls, strict=True):
        width = outputs[0].shape[-1] if outputs[0].ndim > 1 else 0
        alike = 1 < width <= MOST_COLUMNS and is_float(outputs[0]) and all(o.shape[-1:] == (width,) for o in outputs)
        rows = np.concatenate([wide(o).reshape(-1, width) for o in outputs]) if alike else np.zeros((0, 1))
        by_place = np.broadcast_to(spread(rows), rows.shape[-1:])
        whole = float(np.nanstd(rows)) if len(rows) >= ENOUGH_ROWS and bool(np.isfinite(rows).all()) else 0.0
        apart = whole > 0 and bool((by_place < UNLIKE * whole).any())
        found.append(tuple(float(min(1.0, s / whole)) if s < UNLIKE * whole else 1.0 for s in by_place) if apart else ())
    return tuple(found)


def from_call_to_call(calls: Sequence[Sequence[Array]], example: Sequence[Array]) -> tuple[float, ...]:
    """Return how much each output of few numbers varies from one call to the next; 0 for others.

    A loss is a single number, which has no spread in itself.
    """
    varied = [0.0] * len(example)
    for n, one in enumerate(example):
        alike = [c[n] for c in calls if c[n].shape == one.shape]
        if one.size < ENOUGH_ROWS and is_float(one) and len(alike) > 1:
            varied[n] = float(np.max(spread(np.concatenate([wide(a).ravel() for a in alike]))))
    return tuple(varied)


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
    return Tolerance(UNITS * PRECISION[dtype], share, why, least=UNITS * LEAST.get(dtype, 0.0))
