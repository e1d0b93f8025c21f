"""Two outputs -> what differs: shape first, then dtype, then where NaN and infinities stand, then values."""

from __future__ import annotations

import numpy as np

from torchferry.records import Difference, Tolerance
from torchferry.verify.arrays import Array, is_float, wide


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
    limit = allowed.rtol * abs(want[at]) + allowed.atol
    words = f"off by {apart[at]:.3g} at {list(at)} ({got[at]:.6g} instead of {want[at]:.6g}), allowed {limit:.2g}"
    return Difference(name, "value", words, float(np.nanmax(apart)), float(relative[at]), at, worst), worst


def _ratio(want: Array, got: Array, allowed: Tolerance) -> Array:
    """Return each difference over what is allowed there; infinite where NaN or infinities do not match."""
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.abs(want - got) / (allowed.rtol * np.abs(want) + allowed.atol)
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    return np.where(same, 0.0, np.where(np.isfinite(want) & np.isfinite(got), ratio, np.inf))


def _pattern(name: str, what: str, where: Array, want: Array, got: Array) -> Difference:
    at = _index(where, int(np.argmax(where)))
    words = f"{got[at]:.6g} instead of {want[at]:.6g} at {list(at)}, {int(where.sum())} such of {where.size}"
    return Difference(name, what, words, np.inf, np.inf, at, np.inf)


def _index(values: Array, flat: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, values.shape))
