"""Feeds made from what a file declares: plausible sizes and values, for files that come without any."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph
from torchferry.check.reading.expressions import evaluate
from torchferry.check.running.feeds import Declared
from torchferry.check.types import dtypes

# The sizes to try, one assignment after the other: those of words that are known, then anything small.
SMALL = ((2, 4), (1, 8), (1, 1), (1, 16), (1, 32), (1, 64), (1, 224))
LARGEST = 1 << 26  # elements of a feed that is made up: more would be a test of the machine, not of the file
MOST_AXES = 64  # of an array of numpy
THROUGH = frozenset({"Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand", "Transpose", "Slice"})


def feeds(model: onnx.ModelProto, declared: Sequence[Declared]) -> Iterator[dict[str, Any]]:
    """Yield feeds worth trying, likeliest first; nothing where `why_none` has a reason."""
    if any(_no_numbers(d) or len(d.shape or ()) > MOST_AXES for d in declared):
        return
    rows = _table_rows(model)
    symbols = sorted({s for d in declared for s in d.shape or () if isinstance(s, str)}, key=str)
    for batch, other in SMALL:
        sizes = {s: batch if re.search(r"batch|^n$|^b$", s, re.I) else other for s in symbols if s.isidentifier()}
        shapes = {d.name: _shape(d, sizes, other) for d in declared}
        if sum(prod(shape) for shape in shapes.values()) <= LARGEST:
            yield {d.name: _array(d, shapes[d.name], rows.get(d.name)) for d in declared}
        if not symbols and all(isinstance(s, int) for d in declared for s in d.shape or ()):
            return


def why_none(declared: Sequence[Declared]) -> str:
    """Return why no feeds are made, in words."""
    for spec in declared:
        if _no_numbers(spec):
            return f"its input `{spec.name}` is no tensor of numbers ({spec.type})"
        if len(spec.shape or ()) > MOST_AXES:
            return f"its input `{spec.name}` has {len(spec.shape or ())} axes, and arrays have at most {MOST_AXES}"
    return f"its inputs have more than {LARGEST:,} elements"


def _no_numbers(spec: Declared) -> bool:
    return dtypes.of_text(spec.type) in (None, np.dtype(object))


def _shape(spec: Declared, sizes: Mapping[str, int], other: int) -> tuple[int, ...]:
    shape = []
    for size in spec.shape or ():
        known = size if isinstance(size, int) and size >= 0 else evaluate(size, sizes) if isinstance(size, str) else None
        shape.append(other if known is None else max(known, 0))
    return tuple(shape)


def _array(spec: Declared, shape: tuple[int, ...], rows: int | None) -> np.ndarray:
    dtype = dtypes.of_text(spec.type)
    assert dtype is not None
    name = spec.name.lower()
    if dtype.kind == "b" or "mask" in name:
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        if "position" in name and shape:
            return np.broadcast_to(np.arange(shape[-1]), shape).astype(dtype)
        return (np.arange(prod(shape)) * 7 % min(rows, 100)).reshape(shape).astype(dtype) if rows else np.ones(shape, dtype)
    # a wave, other for each input: numpy's random numbers take longer to load than most files to open
    wave = np.sin(np.arange(prod(shape), dtype=np.float32) * np.float32(1.7) + sum(spec.name.encode()))
    return wave.reshape(shape).astype(np.float32).astype(dtype)


def _table_rows(model: onnx.ModelProto) -> dict[str, int]:
    """Return, for inputs that pick rows of a stored table, how many rows the smallest such table has."""
    stored = {t.name: t.dims[0] for t in model.graph.initializer if t.dims}
    makers = graph.makers(model.graph)
    rows: dict[str, int] = {}
    for place in graph.nodes_of(model.graph):
        node = place.node
        if (
            node.op_type == "Gather"
            and len(node.input) > 1
            and node.input[0] in stored
            and graph.attributes(node).get("axis", 0) == 0
        ):
            source = node.input[1]
            while (maker := makers.get(source)) is not None and maker.op_type in THROUGH:
                source = maker.input[0]
            rows[source] = min(rows.get(source, 1 << 40), stored[node.input[0]])
    return rows
