"""How a constant may have been made: filled with one value, counted up, or a triangle; so that it can be made for other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchferry.check.types import dtypes
from torchferry.records.rewrites import Counted, Filled, Number, Pattern, Repeated, Sizes, Triangle


def describe(value: np.ndarray, sizes: Sizes, slim: bool) -> Pattern | None:
    """Return how to make `value` for other sizes (entries that are no numbers move), or None if it shows no pattern."""
    word = next((w for w, n in dtypes.ENUM.items() if dtypes.of_text(f"tensor({w})") == value.dtype), None)
    moving = [i for i, s in enumerate(sizes) if not isinstance(s, int)]
    if word is None or not moving or not value.size:
        return None
    if value.dtype.kind in "fiub" and np.all(value == value.reshape(-1)[0]):
        kept = tuple(1 if slim and i in moving else s for i, s in enumerate(sizes))
        return Filled(kept, word, _number(value.reshape(-1)[0]))
    if all(np.array_equal(value, np.broadcast_to(value.take([0], i), value.shape)) for i in moving):
        return Repeated(tuple(s if i in moving else 1 for i, s in enumerate(sizes)), tuple(moving))
    if len(moving) == 1 and (counted := _counted(value, moving[0])) is not None:
        return Counted(sizes, word, moving[0], *counted)
    if value.ndim >= 2 and set(moving) <= {value.ndim - 2, value.ndim - 1} and all(s == 1 for s in value.shape[:-2]):
        triangle = _triangle(value.reshape(value.shape[-2:]))
        return Triangle(sizes, word, *triangle) if triangle is not None else None
    return None


def _counted(value: np.ndarray, axis: int) -> tuple[int, int] | None:
    """Return first and step of a whole-numbered count along an axis, the same along all others."""
    if value.shape[axis] < 2 or value.dtype.kind not in "if":
        return None
    line = np.moveaxis(value, axis, -1).reshape(-1, value.shape[axis])
    first, step = line[0, 0], line[0, 1] - line[0, 0]
    expected = first + step * np.arange(line.shape[1])
    whole = float(first).is_integer() and float(step).is_integer()
    return (
        (int(first), int(step)) if whole and step != 0 and np.array_equal(line, np.broadcast_to(expected, line.shape)) else None
    )


def _triangle(value: np.ndarray) -> tuple[Number, Number, int] | None:
    """Return the two values, inside and outside, and the diagonal of a triangular matrix."""
    outside, inside = value[0, -1], value[-1, 0]
    if value.shape[0] < 2 or _same(outside, inside):
        return None
    rows, columns = np.indices(value.shape)
    for diagonal in range(-value.shape[0] + 1, value.shape[1]):
        keep = columns <= rows + diagonal
        made = np.where(keep, inside, outside)
        if keep.any() and not keep.all() and np.array_equal(made, value, equal_nan=value.dtype.kind == "f"):
            return _number(inside), _number(outside), diagonal
    return None


def _same(a: Any, b: Any) -> bool:
    return bool(a == b)


def _number(value: Any) -> Number:
    """Return a number that JSON can hold."""
    if isinstance(value, np.bool_):
        return bool(value)
    if value.dtype.kind == "f" and not np.isfinite(value):
        return str(float(value))
    return value.item()
