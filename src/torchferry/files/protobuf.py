"""The fields of a protobuf message, read past what is large: a model of gigabytes takes as long as one without weights."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Buffer = Any  # bytes, or a file mapped into memory


@contextmanager
def mapped(path: Path) -> Iterator[Buffer]:
    """Give the bytes of a file without reading them; raises OSError or ValueError for what is no file, or empty."""
    if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for its other end
        raise ValueError("no file")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        yield whole


class TooManyFields(ValueError):
    """There are more fields than were to be looked at: no graph that anybody wrote, or one with tables of millions of numbers."""


def fields(data: Buffer, start: int, stop: int, left: list[int] | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield the number, beginning and end of each field of a message that has a length; the others are passed over.

    left: how many fields may be looked at, counted down over all messages that share it.
    """
    while start < stop:
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                raise TooManyFields
        key, start = _varint(data, start)
        kind = key & 7
        if kind == 2:
            length, start = _varint(data, start)
            if start + length > stop:
                raise ValueError("a field is longer than what it stands in")
            yield key >> 3, start, start + length
            start += length
        elif kind == 0:
            _, start = _varint(data, start)
        elif kind in (1, 5):
            start += 8 if kind == 1 else 4
        else:
            raise ValueError("no field of a message")


def _varint(data: Buffer, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("no number")
