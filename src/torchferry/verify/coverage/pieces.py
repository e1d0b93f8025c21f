"""A tensor of the file as rows of the model's tensors: a slice of one, several behind each other, gates in another order.

Rows are found by their hash and compared byte for byte afterwards. Not every order of rows will do: a table in which two rows
have changed places is made of the same rows, and is another table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from torchferry.verify.arrays import Array
from torchferry.verify.coverage.equality import BLOCK, equal
from torchferry.verify.coverage.recipes import Rows, WeightRows, as_rows
from torchferry.verify.coverage.stored import Stored

MOST_PIECES = 64
MOST_PARTS = 4  # equal parts that a tensor may be cut into and put together again from: an LSTM has four gates
MOST_ELEMENTS = 2**20  # numbers up to which a tensor is also taken as rows of one number each
MOST_PLACES = 16  # places of one and the same row that are tried
Rowed = tuple[str, int]  # a tensor of the model, and the axis along which its rows lie


@dataclass(frozen=True, slots=True)
class _Index:
    """Where a row stands among the model's tensors, by its hash."""

    hashes: dict[Rowed, Array]
    places: dict[int, list[tuple[Rowed, int]]]


class Pieces:
    """The rows of the model's tensors, hashed once for each length of row that is asked for."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._tensors = tensors
        self._indices: dict[tuple[int, str], _Index] = {}

    def find(self, stored: Stored, values: Array) -> Rows | None:
        """Return how a tensor is put together of the model's rows; None if it is not."""
        for axis in _ways(values):
            rows = as_rows(values, axis) if axis >= -1 else values.reshape(-1, 1)
            index = self._index(rows.shape[1], values.dtype)
            if (pieces := _runs(_hashed(rows), index)) is None or not self._sound(rows, pieces, index):
                continue
            return Rows(max(axis, -1), tuple(pieces), stored.shape, stored.dtype)
        return None

    def _index(self, width: int, dtype: np.dtype[np.generic]) -> _Index:
        key = (width, dtype.str)
        if key not in self._indices:
            self._indices[key] = _indexed({r: _hashed(a) for r, a in self._rowed(width, dtype)})
        return self._indices[key]

    def _rowed(self, width: int, dtype: np.dtype[np.generic]) -> Iterator[tuple[Rowed, Array]]:
        for name, tensor in self._tensors.items():
            if tensor.dtype != dtype or not tensor.size:
                continue
            for axis in (-1, *range(tensor.ndim)) if tensor.ndim > 1 else (-1,):
                length = tensor.shape[-1] if axis < 0 and tensor.ndim > 1 else 1 if tensor.ndim < 2 else 0
                if (length or tensor.size // tensor.shape[axis]) == width:
                    yield (name, axis), as_rows(tensor, axis)

    def _sound(self, rows: Array, pieces: Sequence[WeightRows], index: _Index) -> bool:
        """Return whether every piece is one that an exporter would cut, and is there byte for byte."""
        at = 0
        for piece in pieces:
            count = len(index.hashes[piece.name, piece.axis])
            if len(pieces) > 1 and not _cut(piece, count):
                return False
            source = as_rows(self._tensors[piece.name], piece.axis)[piece.start : piece.stop]
            if not equal(rows[at : at + len(source)], source):
                return False
            at += len(source)
        return True


def _ways(values: Array) -> Iterator[int]:
    """Yield the axes along which a tensor may be taken apart; -1: all but the last together; -2: number by number."""
    if values.ndim > 1:
        yield -1
        yield from range(values.ndim)
    if 1 < values.size <= MOST_ELEMENTS:
        yield -2


def _cut(piece: WeightRows, count: int) -> bool:
    """Return whether a piece is all of a tensor, or some of the equal parts that it falls into."""
    for parts in range(1, MOST_PARTS + 1):
        part = count // parts
        if count % parts == 0 and (parts == 1 or part > 1) and piece.start % part == 0 and piece.stop % part == 0:
            return True
    return False


def _runs(hashes: Array, index: _Index) -> list[WeightRows] | None:
    """Return the longest runs of the model's rows that a tensor's rows fall into; None where a row is not the model's."""
    pieces: list[WeightRows] = []
    at = 0
    while at < len(hashes):
        best: tuple[int, Rowed, int] | None = None
        for rowed, start in index.places.get(int(hashes[at]), ())[:MOST_PLACES]:
            long = _common(hashes[at:], index.hashes[rowed][start:])
            best = (long, rowed, start) if best is None or long > best[0] else best
        if best is None or len(pieces) >= MOST_PIECES:
            return None
        long, (name, axis), start = best
        pieces.append(WeightRows(name, axis, start, start + long))
        at += long
    return pieces


def _common(one: Array, two: Array) -> int:
    count = min(len(one), len(two))
    unlike = np.flatnonzero(one[:count] != two[:count])
    return int(unlike[0]) if len(unlike) else count


def _indexed(hashes: dict[Rowed, Array]) -> _Index:
    places: defaultdict[int, list[tuple[Rowed, int]]] = defaultdict(list)
    for rowed, found in hashes.items():
        for n, number in enumerate(found.tolist()):
            if len(places[number]) < MOST_PLACES:
                places[number].append((rowed, n))
    return _Index(hashes, places)


def _hashed(rows: Array) -> Array:
    """Return a hash of each row: a sum of its bits with random odd factors."""
    width, bits = rows.shape[1], np.dtype(f"u{rows.dtype.itemsize}")
    factors = np.random.default_rng(0).integers(1, 2**63, width, np.uint64) | np.uint64(1)
    found = np.empty(len(rows), np.uint64)
    step = max(1, BLOCK // max(1, width))
    for start in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[start : start + step]).view(bits).astype(np.uint64)
        found[start : start + step] = (block * factors).sum(1, dtype=np.uint64)
    return found
