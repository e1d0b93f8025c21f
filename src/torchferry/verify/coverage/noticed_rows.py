"""Weights that are not the model's own numbers: whether the trials would have noticed others, row by row.

A weight may rightly be found nowhere in the model: folded, merged, quantised. Then the trials must speak for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from torchferry.records import Bound
from torchferry.verify.arrays import Array
from torchferry.verify.coverage.mutants import opened
from torchferry.verify.coverage.mutations import row_mutant
from torchferry.verify.coverage.schemata import Mutant
from torchferry.verify.coverage.stored import Stored, graphs
from torchferry.verify.coverage.unlike import Unlike
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.trials.plans import TrialPlan

ROWS_TRIED = 12  # of a weight, spread over it
FED = 8  # rows that one trial feeds
LONGEST = 2048  # a size at which a row of a table of positions is looked up


def unreached(
    bench: Bench,
    graph: onnx.GraphProto,
    missing: Sequence[Stored],
    beside: Mapping[str, Unlike],
    trials: Sequence[Judged],
    room: Path | None,
) -> set[str]:
    """Return the weights with a row, of those that are tried, that no trial notices when it is changed."""
    if not trials:
        return {s.name for s in missing}
    mutants = [m for one in missing for m in _row_mutants(graph, one, beside.get(one.name))]
    known = {m.weight for m in mutants}
    with opened(bench, mutants, trials[0], room) as flock:
        loaded = {m.weight for m in flock.mutants}
        left = {flock.mutants[n].weight for n in flock.left(bench, trials)}
    return left | {s.name for s in missing if s.name not in known & loaded}


def _row_mutants(graph: onnx.GraphProto, one: Stored, beside: Unlike | None) -> Iterator[Mutant]:
    values = one.values()
    for place, inner in graphs(graph):
        for node in inner.node:
            for slot, name in enumerate(node.input):
                if name == one.name and values.ndim:
                    for axis, rows in _rows(values, beside):
                        yield from (replace(row_mutant(node, slot, values, axis, row), graph=place) for row in rows)


def _rows(values: Array, beside: Unlike | None) -> Iterator[tuple[int, list[int]]]:
    """Yield rows along an axis: those that differ from the model's, or some spread over the weight's first and last axes."""
    if beside is not None and beside.count < values.size:
        squeezed = [i for i, s in enumerate(beside.shape) if s != 1]
        long = [i for i, s in enumerate(values.shape) if s != 1]
        if len(long) == len(squeezed) and beside.axis in squeezed:
            yield long[beside.near.order.index(squeezed.index(beside.axis))], _spread(beside.places, ROWS_TRIED)
            return
    for axis in {0, values.ndim - 1}:
        yield axis, _spread(range(values.shape[axis]), ROWS_TRIED)


def _spread(places: Sequence[int], most: int) -> list[int]:
    return [places[int(i)] for i in np.unique(np.linspace(0, len(places) - 1, most).astype(int))]


def feeding(bound: Bound, unlike: Unlike, seed: int) -> Iterator[TrialPlan]:
    """Yield trials that may look up what differs: the numbers of a weight's rows in an input, or a size that reaches them."""
    numbers = " ".join(str(p) for p in unlike.places[:FED])
    for spec, example in zip(bound.signature.inputs, bound.args, strict=True):
        if not example.is_complex() and example.numel():
            yield TrialPlan({}, f"numbers {numbers}", seed, only=spec.name)
    for dim in bound.signature.dims:
        size = unlike.places[0] + 1
        if dim.low <= size <= min(LONGEST, dim.high or LONGEST) and size % dim.multiple_of == 0:
            yield TrialPlan({dim.name: size}, "random", seed)
