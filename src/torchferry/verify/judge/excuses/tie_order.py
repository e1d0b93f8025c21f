"""Whether two answers differ only in the order of equal keys: torch and onnxruntime break ties as they like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchferry.verify.arrays import Array, is_float
from torchferry.verify.run.eager_trace import SORTING, Note


def sorts(notes: Sequence[Note]) -> Note | None:
    """Return the first op that picks an order or a place among equals, or None."""
    return next((n for n in notes if picks(n)), None)


def picks(note: Note) -> bool:
    """Return whether an op picks an order or a place among equals."""
    return note.location.op in SORTING and (len(note.dtypes) > 1 or "int64" in note.dtypes)


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


def same_keys(notes: Sequence[Note], want: Array, got: Array) -> bool:
    """Return whether two outputs are places of equal keys: whichever of them is taken, the same key is found."""
    if want.dtype.kind not in "iu" or want.shape != got.shape:
        return False
    return any(_equal_at(n.keys, want, got) for n in notes if n.keys is not None)


def _equal_at(keys: Array, want: Array, got: Array) -> bool:
    for axis in range(keys.ndim):
        whole = want.ndim == keys.ndim
        one, two = (v if whole else np.expand_dims(v, min(axis, v.ndim)) for v in (want, got))
        if one.ndim != keys.ndim or min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= keys.shape[axis]:
            continue
        fits = all(one.shape[a] == keys.shape[a] for a in range(keys.ndim) if a != axis)
        if fits and np.array_equal(np.take_along_axis(keys, one, axis), np.take_along_axis(keys, two, axis)):
            return True
    return False
