"""The operators that a file has in it, read past its weights: a model of gigabytes takes as long as one without any."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GRAPH, FUNCTION = 7, 25  # of a model
NODE, NODE_OF_FUNCTION = 1, 7
OPERATOR, ATTRIBUTE = 4, 5  # of a node
SUBGRAPH, SUBGRAPHS = 6, 11  # of an attribute
Buffer = Any  # bytes, or a file mapped into memory


def operator_names(source: str | os.PathLike[str] | bytes) -> frozenset[str]:
    """Return the names of all operators in a file (a path, or its bytes); none for what is no model."""
    try:
        if isinstance(source, bytes):
            return frozenset(_of_model(source, len(source)))
        with Path(source).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            return frozenset(_of_model(whole, len(whole)))
    except (OSError, ValueError, IndexError, RecursionError):  # not there, empty, cut short, or something else
        return frozenset()


def _of_model(data: Buffer, end: int) -> Iterator[str]:
    for field, start, stop in _fields(data, 0, end):
        if field == GRAPH:
            yield from _of_nodes(data, start, stop, NODE)
        elif field == FUNCTION:
            yield from _of_nodes(data, start, stop, NODE_OF_FUNCTION)


def _of_nodes(data: Buffer, start: int, stop: int, kind: int) -> Iterator[str]:
    for field, begin, end in _fields(data, start, stop):
        if field != kind:
            continue
        for part, first, last in _fields(data, begin, end):
            if part == OPERATOR:
                yield bytes(data[first:last]).decode("utf-8", "replace")
            elif part == ATTRIBUTE:
                for inner, low, high in _fields(data, first, last):
                    if inner in (SUBGRAPH, SUBGRAPHS):
                        yield from _of_nodes(data, low, high, NODE)


def _fields(data: Buffer, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number, beginning and end of each field of a message that has a length; the others are passed over."""
    while start < stop:
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
