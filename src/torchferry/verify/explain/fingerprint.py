"""Which of eager's values are also inside the file, told by the values themselves: names and layouts may differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from torchferry.verify.arrays import Array, is_float, wide

CLOSE = 1e-4  # relative; far above rounding, far below any fault worth locating
MOST_SORTED = 2**17  # larger values are compared in their own order only


class Index:
    """A file's values, to be asked for one that equals a given array in some layout."""

    def __init__(self, values: Mapping[str, Array]) -> None:
        self._by_size: dict[int, list[tuple[str, Array, float, float]]] = defaultdict(list)
        for name, value in values.items():
            if isinstance(value, np.ndarray) and value.size:
                flat = _flat(value)
                self._by_size[flat.size].append((name, flat, *_sums(flat)))

    def find(self, value: Array) -> list[str]:
        """Return the names of the file's values that hold the same numbers."""
        if not value.size:
            return []
        flat = _flat(value)
        total, absolute = _sums(flat)
        slack = CLOSE * max(absolute, np.finfo(np.float64).tiny)
        found = []
        for name, other, its_total, its_absolute in self._by_size.get(flat.size, ()):
            near = abs(absolute - its_absolute) <= 4 * slack and abs(total - its_total) <= 4 * slack
            if (near or not np.isfinite(absolute)) and _equal(flat, other):
                found.append(name)
        return found


def _flat(value: Array) -> Array:
    return np.ravel(wide(value) if is_float(value) or value.dtype.kind in "biu" else np.zeros(0))


def _sums(flat: Array) -> tuple[float, float]:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(flat.sum()), float(np.abs(flat).sum())


def _equal(one: Array, two: Array) -> bool:
    sizes = np.abs(one[np.isfinite(one) & (one != 0)])
    # the scale of the ordinary numbers: a mask of -1e9 must not make all others look alike
    atol = CLOSE * float(np.quantile(sizes, 0.1)) if sizes.size else 0.0
    if np.allclose(one, two, rtol=CLOSE, atol=atol, equal_nan=True):
        return True
    if one.size > MOST_SORTED:
        return False
    return bool(np.allclose(np.sort(one), np.sort(two), rtol=CLOSE, atol=atol, equal_nan=True))
