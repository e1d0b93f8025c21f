"""Whether two answers differ only in the order of equal keys: torch and onnxruntime break ties as they like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchferry.verify.arrays import Array, is_float
from torchferry.verify.tape import Note

SORTING = ("sort", "topk", "argmax", "argmin", "argsort", "max", "min", "kthvalue", "mode", "median", "_unique2", "unique_dim")


def sorts(notes: Sequence[Note]) -> Note | None:
    """Return the first op that picks an order or a place among equals, or None."""
    return next((n for n in notes if n.location.op in SORTING and (len(n.dtypes) > 1 or "int64" in n.dtypes)), None)


def tied(notes: Sequence[Note]) -> Note | None:
    """Return the first such op whose keys, with values kept on the tape, hold equal ones."""
    for note in notes:
        if note.location.op in SORTING and any(_repeats(v) for v in note.values if is_float(v) or v.dtype.kind in "iu"):
            return note
    return None


def _repeats(values: Array) -> bool:
    """Return whether a result holds equal neighbours along some axis; sorted keys that repeat stand side by side."""
    return any(values.shape[a] > 1 and bool((np.diff(values, axis=a) == 0).any()) for a in range(values.ndim))


def permuted(want: Array, got: Array) -> bool:
    """Return whether two outputs hold the same numbers, only in another order."""
    return want.shape == got.shape and bool(np.array_equal(np.sort(want, axis=None), np.sort(got, axis=None)))
