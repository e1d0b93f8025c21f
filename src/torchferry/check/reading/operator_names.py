"""The operators that a file has in it, read past its weights: a model of gigabytes takes as long as one without any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from torchferry.files.protobuf import Buffer, fields, mapped

GRAPH, FUNCTION = 7, 25  # of a model
NODE, NODE_OF_FUNCTION = 1, 7
OPERATOR, ATTRIBUTE = 4, 5  # of a node
SUBGRAPH, SUBGRAPHS = 6, 11  # of an attribute


def operator_names(source: str | os.PathLike[str] | bytes) -> frozenset[str]:
    """Return the names of all operators in a file (a path, or its bytes); none for what is no model."""
    try:
        if isinstance(source, bytes):
            return frozenset(_of_model(source, len(source)))
        with mapped(Path(source)) as whole:
            return frozenset(_of_model(whole, len(whole)))
    except (OSError, ValueError, IndexError, RecursionError):  # not there, empty, cut short, or something else
        return frozenset()


def has_functions(source: str | os.PathLike[str] | bytes) -> bool:
    """Whether a file (a path, or its bytes) has functions of its own; not, for what is no model."""
    try:
        if isinstance(source, bytes):
            return any(field == FUNCTION for field, _, _ in fields(source, 0, len(source)))
        with mapped(Path(source)) as whole:
            return any(field == FUNCTION for field, _, _ in fields(whole, 0, len(whole)))
    except (OSError, ValueError, IndexError):
        return False


def _of_model(data: Buffer, end: int) -> Iterator[str]:
    for field, start, stop in fields(data, 0, end):
        if field == GRAPH:
            yield from _of_nodes(data, start, stop, NODE)
        elif field == FUNCTION:
            yield from _of_nodes(data, start, stop, NODE_OF_FUNCTION)


def _of_nodes(data: Buffer, start: int, stop: int, kind: int) -> Iterator[str]:
    for field, begin, end in fields(data, start, stop):
        if field != kind:
            continue
        for part, first, last in fields(data, begin, end):
            if part == OPERATOR:
                yield bytes(data[first:last]).decode("utf-8", "replace")
            elif part == ATTRIBUTE:
                for inner, low, high in fields(data, first, last):
                    if inner in (SUBGRAPH, SUBGRAPHS):
                        yield from _of_nodes(data, low, high, NODE)
