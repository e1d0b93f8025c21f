"""Trials that come by all of a table: every row of what an input indexes, from its end too; one column if others hold no codes.

Which inputs reach an index is seen in eager; how far they may go, through clamps and sums and casts, is found by trying it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from torchferry.records import Dim
from torchferry.verify.trials.plans import TrialPlan, example_sizes
from torchferry.verify.trials.tries import Tries

MANY_ROWS = 4096  # of a table, in one trial
CHUNKS = 4  # trials for the rows of one table
ONE_BY_ONE = 16  # the same, for an input that is a single number
MOST_TABLES = 3  # that one input reaches, the shortest first: an index must fit into all of them
HALVINGS = 10  # to find how far an input may go
MOST_COLUMNS = 64  # of an input, looked at one by one


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that an input can come by: how many, the number of the first, and the column of the input that tells them."""

    count: int
    offset: int = 0
    column: int | None = None

    def way(self, kind: str = "rows", start: int = 0) -> str:
        """Return the way to fill the input with them, beginning with one of them."""
        numbers = f"{self.count} {start} {self.offset}" if self.offset else f"{self.count} {start}" if start else f"{self.count}"
        return (f"column-{self.column} " if self.column is not None else "") + f"{kind} {numbers}"


def tables(tries: Tries, seed: int) -> Iterator[TrialPlan]:
    """Yield, for each input that indexes something, calls that come by all of it."""
    for place in range(len(tries.bound.args)):
        for length in _lengths(tries, place)[:MOST_TABLES]:
            rows = _accepted(tries, place, length, seed)
            if rows is not None:
                yield from _plans(tries, place, rows, length, seed)
            if tries.bound.args[place].is_floating_point() or (rows is not None and not _reaches(tries, place, rows, seed)):
                yield from _scaled(tries, place, length, seed)
            for column in _columns(tries.bound.args[place]) if rows is None else ():
                if _reaches(tries, place, rows := Rows(length, column=column), seed):
                    yield from _plans(tries, place, rows, length, seed)


def _lengths(tries: Tries, place: int) -> list[int]:
    met = (d for d in tries.decisions.values() if d.kind == "index" and place in d.inputs)
    return sorted({d.length for d in met if d.length > 1})


def _plans(tries: Tries, place: int, rows: Rows, length: int, seed: int) -> Iterator[TrialPlan]:
    name = tries.bound.signature.inputs[place].name
    yield TrialPlan({}, rows.way(), seed + 1, only=name)
    if tries.takes(between := TrialPlan({}, rows.way("between-rows"), seed + 1, only=name)):
        yield between
    yield from _all_of_them(tries, place, rows, seed)
    if rows.column is None:
        ends = (TrialPlan({}, f"rows-from-end {n}", seed + 1, only=name) for n in dict.fromkeys((rows.count, length)))
        yield from [plan for plan in ends if tries.takes(plan)][:1]


def _accepted(tries: Tries, place: int, length: int, seed: int) -> Rows | None:
    """Return the rows that eager takes: all of a table, or fewer where something is added to an index, or counted from 1."""
    name = tries.bound.signature.inputs[place].name

    def takes(rows: Rows) -> bool:
        return rows.count > 0 and tries.takes(TrialPlan({}, rows.way(), seed + 1, only=name))

    likely = [Rows(length), Rows(length, 1), Rows(length - 1), Rows(length - 1, 1), Rows(length - 2), Rows(length - 2, 2)]
    if (first := next((rows for rows in likely if takes(rows)), None)) is not None:
        return first
    example = tries.bound.args[place]
    least = int(example.min()) if example.numel() and not example.is_floating_point() else 0
    low, high = 0, length - 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if takes(Rows(middle, least)) else (low, middle)
    return Rows(low, least) if low else None


def _scaled(tries: Tries, place: int, length: int, seed: int) -> Iterator[TrialPlan]:
    """Yield numbers from 0 as far as they lead to the last row: what is multiplied or divided first goes another way."""
    name = tries.bound.signature.inputs[place].name

    def plan(number: float) -> TrialPlan:
        return TrialPlan({}, f"up-to {number:.9g}", seed + 1, only=name)

    taken = 0.0
    for power in range(-3, 11):
        number = 0.999 * 10.0**power
        if (seen := tries.look(plan(number))) is None:
            for _ in range(HALVINGS if taken else 0):
                middle = (taken + number) / 2
                taken, number = (middle, number) if tries.takes(plan(middle)) else (taken, middle)
            yield from [plan(taken)] if taken else []
            return
        lasts = [d.last for d in seen.decisions.values() if d.kind == "index" and d.length == length]
        taken = number
        if max(lasts, default=-1) >= length - 1 - length // 50:
            yield plan(taken)
            return


def _columns(example: torch.Tensor) -> range:
    return range(example.shape[-1] if example.dim() > 1 and example.shape[-1] <= MOST_COLUMNS else 0)


def _reaches(tries: Tries, place: int, rows: Rows, seed: int) -> bool:
    """Return whether an input, or a column of it, moves an index to the end of what has as many rows."""
    seen = tries.look(TrialPlan({}, rows.way(), seed + 1, only=tries.bound.signature.inputs[place].name))
    met = seen.decisions.values() if seen is not None else ()
    return any(d.kind == "index" and d.length >= rows.count and d.last >= rows.count - 1 for d in met)


def _all_of_them(tries: Tries, place: int, rows: Rows, seed: int) -> Iterator[TrialPlan]:
    """Yield calls large enough to come by every row, or by as many as their cost allows."""
    bound, spec = tries.bound, tries.bound.signature.inputs[place]
    example = bound.args[place]
    fed = max(1, int(example.numel()) // (example.shape[-1] if rows.column is not None else 1))
    sizes: dict[str, int] = {}
    if fed < rows.count:
        sizes, fed = _enlarged(tries, place, rows, fed, seed)
        if sizes:
            yield TrialPlan(sizes, rows.way(), seed + 1, only=spec.name)
    most = ONE_BY_ONE if fed == 1 else CHUNKS
    for start in range(0, rows.count, fed) if rows.count > fed else ():
        if start // fed < most:
            yield TrialPlan(sizes, rows.way(start=start or rows.count), seed + 1, only=spec.name)


def _enlarged(tries: Tries, place: int, rows: Rows, fed: int, seed: int) -> tuple[dict[str, int], int]:
    """Return sizes at which an input has room for many rows, as far as their cost allows, and how many fit."""
    bound, spec = tries.bound, tries.bound.signature.inputs[place]
    base = example_sizes(bound)
    for dim in (d for d in bound.signature.dims if d.name in spec.shape and base.get(d.name)):
        times = -(-min(rows.count, MANY_ROWS) // fed)
        while times > 1:
            size = _fitting(dim, base[dim.name] * times)
            if size > base[dim.name] and tries.takes(TrialPlan({dim.name: size}, rows.way(), seed + 1, only=spec.name)):
                return {dim.name: size}, fed * size // base[dim.name]
            times //= 2
    return {}, fed


def _fitting(dim: Dim, size: int) -> int:
    step = max(1, dim.multiple_of)
    rounded = -(-size // step) * step
    return rounded if dim.high is None else min(rounded, dim.high // step * step)
