"""Two outputs -> what differs: shape first, then dtype, then where NaN and infinities stand, then values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from torchferry.foreign.python_warnings import no_warnings
from torchferry.records import Difference, Tolerance
from torchferry.verify.arrays import Array, is_float, wide

ENOUGH_ROWS = 4  # numbers from which a feature's own spread is told
DENORMAL = 2.0**-126  # numbers below it have no digits to speak of, and kernels may flush them to zero
SENTINEL = 1e4  # times the usual: -1e9 under a mask is no measure of anything


def compare(name: str, want: Array, got: Array, allowed: Tolerance) -> tuple[Difference | None, float]:
    """Return what differs between eager's output and the file's (None: nothing), and the worst ratio to the allowance.

    Nothing is broadcast: `[n, 1]` against `[n]` is a difference.
    """
    if want.shape != got.shape:
        return Difference(name, "shape", f"shape {list(got.shape)}, expected {list(want.shape)}", ratio=np.inf), np.inf
    if want.dtype != got.dtype:
        return Difference(name, "dtype", f"dtype {got.dtype.name}, expected {want.dtype.name}", ratio=np.inf), np.inf
    if want.size == 0:
        return None, 0.0
    if not is_float(want):
        return _exact(name, want, got)
    return _floats(name, wide(want), wide(got), allowed)


def wrong(want: Array, got: Array, allowed: Tolerance) -> Array:
    """Return where two arrays of one shape differ by more than is allowed, as booleans."""
    if not is_float(want):
        return np.asarray(want != got)
    return _ratio(wide(want), wide(got), allowed) > 1


def allowance(want: Array, allowed: Tolerance) -> Array:
    """Return how far each number may be off: some units in its last place, and a share of its output's spread."""
    sizes = np.abs(np.nan_to_num(wide(want), nan=0.0, posinf=0.0, neginf=0.0))  # of infinity nothing may be missing
    return allowed.rtol * sizes + allowed.share * spread(want, allowed.columns) + allowed.atol + max(allowed.least, DENORMAL)


def spread(values: Array, columns: Sequence[float] = ()) -> Array:
    """Return how much the numbers of an output vary, by position on its last axis where that can be told.

    A feature of a millionth beside one of a million has its own scale. `columns` says what share of the whole output's spread
    each has, for outputs of too few rows to show it.
    """
    numbers = _without_sentinels(wide(values))
    if not np.isfinite(numbers).any():
        return np.zeros(())
    rows = numbers.size // numbers.shape[-1] if numbers.ndim > 1 and numbers.shape[-1] else 0
    deviation = np.nanstd if np.isnan(numbers).any() else np.std  # the same where nothing is missing, in half the time
    with no_warnings(), np.errstate(over="ignore", invalid="ignore"):  # a column without a single number
        if rows < ENOUGH_ROWS:
            shares = np.asarray(columns) if numbers.ndim and len(columns) == numbers.shape[-1] else np.ones(())
            return np.nan_to_num(deviation(numbers)) * shares
        return np.nan_to_num(deviation(numbers.reshape(-1, numbers.shape[-1]), axis=0))


def _without_sentinels(numbers: Array) -> Array:
    """Return the numbers with NaN for infinities, and for what a mask wrote all over: one huge number, many times."""
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    ends = (np.fmin.reduce(numbers, axis=None), np.fmax.reduce(numbers, axis=None)) if numbers.size else ()
    for extreme, opposite in zip(ends, ends[::-1], strict=True):
        if abs(extreme) <= SENTINEL * abs(opposite) and extreme != opposite:  # the usual case, told without a further look
            continue
        here = numbers == extreme
        others = np.abs(numbers[~here & ~np.isnan(numbers)])
        if here.sum() > 1 and others.size and abs(extreme) > SENTINEL * others.max():
            numbers = np.where(here, np.nan, numbers)
    return numbers


def _exact(name: str, want: Array, got: Array) -> tuple[Difference | None, float]:
    unequal = want != got
    if not unequal.any():
        return None, 0.0
    apart = np.abs(wide(want) - wide(got)) if want.dtype.kind in "iu" else unequal.astype(np.float64)
    at = _index(apart, int(np.argmax(apart)))
    words = f"{int(unequal.sum())} of {want.size} values differ, {got[at]} instead of {want[at]} at {list(at)}"
    return Difference(name, "value", words, float(apart.max()), 1.0, at, np.inf), np.inf


def _floats(name: str, want: Array, got: Array, allowed: Tolerance) -> tuple[Difference | None, float]:
    ratio = _ratio(want, got, allowed)
    worst = float(ratio.max())
    if worst <= 1:
        return None, worst
    at = _index(ratio, int(np.argmax(ratio)))
    nan, inf = np.isnan(want) != np.isnan(got), np.isinf(want) != np.isinf(got)
    if nan.any():
        return _pattern(name, "nan", nan, want, got), np.inf
    if inf.any():
        return _pattern(name, "inf", inf, want, got), np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(np.where(want == got, 0.0, want - got))  # inf - inf is NaN
        relative = apart / np.maximum(np.abs(want), np.finfo(np.float64).tiny)
    limit = float(np.broadcast_to(allowance(want, allowed), want.shape)[at])
    words = f"off by {apart[at]:.3g} at {list(at)} ({got[at]:.6g} instead of {want[at]:.6g}), allowed {limit:.2g}"
    return Difference(name, "value", words, float(np.nanmax(apart)), float(relative[at]), at, worst), worst


def _ratio(want: Array, got: Array, allowed: Tolerance) -> Array:
    """Return each difference over what is allowed there; infinite where NaN or infinities do not match."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        ratio = np.abs(want - got) / allowance(want, allowed)
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    return np.where(same, 0.0, np.where(np.isfinite(want) & np.isfinite(got), ratio, np.inf))


def _pattern(name: str, what: Literal["nan", "inf"], where: Array, want: Array, got: Array) -> Difference:
    at = _index(where, int(np.argmax(where)))
    words = f"{got[at]:.6g} instead of {want[at]:.6g} at {list(at)}, {int(where.sum())} such of {where.size}"
    return Difference(name, what, words, np.inf, np.inf, at, np.inf)


def _index(values: Array, flat: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, values.shape))
