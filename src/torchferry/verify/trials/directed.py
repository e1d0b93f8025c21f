"""Trials directed at something: a number that values are held against, a table's rows, a length, a side that was never taken.

Each source yields its best first, and they take turns. A trial is made only of a call that eager takes, so that what is refused
is drawn again at once and not told as no evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import onnx
import torch

from torchferry.records import Bound, Dim, Guard
from torchferry.records.kinds_of_values import STRANGE
from torchferry.verify.trials.constants import Number, for_input, numbers
from torchferry.verify.trials.landmarks import handles_nan, landmarks
from torchferry.verify.trials.plans import TrialPlan, example_sizes, in_turns
from torchferry.verify.trials.pools import many_rows, pooled
from torchferry.verify.trials.tables import tables
from torchferry.verify.trials.thresholds import thresholds
from torchferry.verify.trials.tries import Tries
from torchferry.verify.trials.turns import VERY_LONG_CALL, around, in_a_row, long_sizes, too_long, turns
from torchferry.verify.trials.untaken_sides import reached
from torchferry.verify.trials.walk import walked

NANS = ("nan", "some-nan", "nan-row", "nan-column", "all-nan", "inf", "some-inf", "some-negative-inf")
MAXIMA = ("MaxPool", "ReduceMax", "ReduceMin", "GlobalMaxPool")  # runtimes lose a NaN here and keep one there
MORE_NANS = 6
SPECIAL = (
    "some-empty", "ragged-positions", "segments", "reset-positions", "all-empty", "gapped-positions", "weights",
    "repeated-positions", "nothing-valid", "unsorted-lengths", "falling-positions", "some-zeros", "halves",
    "far-positions", "minus-ones",
)  # fmt: skip
DECADES = (
    "powers 1000", "times 1e-06", "times 10", "times 1e+06", "times 0.1", "powers 1e+09", "times 0.01", "times 100",
    "times 0.0001", "times 10000", "times 1e-09", "times 1e+09", "plus 1", "plus -1", "plus 10", "plus -10", "plus 1000",
    "plus -1000",
)  # fmt: skip
WIDE = ("beyond-32-bits", "spread 100", "powers 1e+06", "whole-dtype", "spread 10000", "minus-ones")  # whole numbers
TODAY = "later 1.7e+09"  # seconds, and what else is numbered so far on: less than 32 bits, and more than float32 tells apart
NUMERIC = ("float", "ids", "int", "types", "positions", "lengths", "number")
FEW_COLUMNS = 12
SMALL = ("spread 10", "rows 6 2", "rows 6 3", "rows 6 5")  # also for numbers that something is counted by
LARGEST_MARK = 65536  # a number that may be about a size
MANY_ALIKE = ("duplicates", "constant", "ties")  # what is counted along a length grows with it only where numbers are alike
IN_MANY_ROWS = ("powers 1000", "times 10")
MANY_ROWS, MOST_IN_MANY_ROWS = (2048, 512, 128), 8
MOST_SIZES = 24  # trials of each dim for the marks of model and file


def directed(tries: Tries, guards: Sequence[Guard], seed: int, graph: onnx.GraphProto) -> Iterator[TrialPlan]:
    """Yield the directed trials, in turns from each source, then those that a search finds."""
    tries.called(tries.bound.args)
    for plan in (TrialPlan({}, "random", seed + 1), TrialPlan({}, "random", seed + 2), TrialPlan({}, "negative", seed + 1)):
        if tries.budget.cheap:  # what draws come by anyway need not be searched for
            tries.look(plan)
    found = numbers(tries.decisions.values(), tries.bound.module, graph)
    marks = [int(n.value) for n in found if n.value == int(n.value) and 2 <= n.value <= LARGEST_MARK]
    searches = (walked(tries, seed), _together(tries, found, seed)) if tries.free else ()
    sources = (
        _nans(tries, seed, graph),
        tables(tries, seed),
        *searches,
        _against_numbers(tries, found, seed),
        _in_many_rows(tries, found, seed),
        _sizes(tries, guards, marks, seed),
        (TrialPlan({}, v, seed + 1) for v in SPECIAL if tries.takes(TrialPlan({}, v, seed + 1), finite=False)),
        _decades(tries, seed),
    )
    for plan in itertools.chain(in_turns(sources), reached(tries, seed) if tries.free else ()):
        yield replace(tries.linked(plan), directed=True)


def _names(bound: Bound, roles: Sequence[str] = NUMERIC) -> list[str]:
    return [s.name for s in bound.signature.inputs if bound.roles.get(s.name, "float") in roles]


def _nans(tries: Tries, seed: int, graph: onnx.GraphProto) -> Iterator[TrialPlan]:
    """Yield NaN and infinities early where the model deals with them, one of each where only the file does.

    A NaN that goes into a maximum comes at several places: a kernel that compares two numbers keeps the second of them.
    """
    meant = any(d.kind == "nan" for d in tries.decisions.values()) or handles_nan(tries.bound.module)
    looked_for = any(n.op_type in ("IsNaN", "IsInf") for n in graph.node)
    names = _names(tries.bound, ("float",))
    if not meant and any(n.op_type in MAXIMA for n in graph.node):
        yield from (TrialPlan({}, "nan", seed + n) for n in range(2, 2 + MORE_NANS) if names)
    for values in NANS if meant else STRANGE if looked_for else ():
        plan = TrialPlan({}, values, seed + 1)
        if tries.takes(plan, finite=False):
            yield plan
        for name in names if len(names) > 1 else ():
            if tries.takes(alone := replace(plan, only=name), finite=False):
                yield alone


def _against_numbers(tries: Tries, found: Sequence[Number], seed: int) -> Iterator[TrialPlan]:
    """Yield values on and on either side of each number, for the inputs that it is about."""
    bound = tries.bound
    names = [s.name for s in bound.signature.inputs]
    numeric = _names(bound)
    queues = []
    for name in numeric:
        values = for_input(found, names.index(name))
        only = name if len(numeric) > 1 else ""
        example = bound.args[names.index(name)]
        codes = example.dim() > 1 and example.shape[-1] <= FEW_COLUMNS
        columns = int(example.shape[-1]) if codes else 0
        queues.append(_on_both_sides(tries, values, only, columns, seed))
    yield from in_turns(queues)


def _on_both_sides(tries: Tries, values: Sequence[float], only: str, columns: int, seed: int) -> Iterator[TrialPlan]:
    for way in ("near", "above", "below", "spread", "at"):
        for value in values:
            if way == "spread" and abs(value) < 2:
                continue
            shown = f"{int(value)}" if value == int(value) else f"{value:.9g}"  # nine digits tell a float32
            plan = TrialPlan({}, f"{way} {shown}", seed + 1, only=only)
            if tries.takes(plan):
                yield plan
            elif way != "at":
                yield from _in_columns(tries, plan, columns)


def _in_many_rows(tries: Tries, found: Sequence[Number], seed: int) -> Iterator[TrialPlan]:
    """Yield calls of many rows over all that an input's numbers span: what one row of hundreds comes by, a few rows do not."""
    sizes, bound = many_rows(tries, seed, MANY_ROWS), tries.bound
    if not sizes:
        return
    names, numeric = [s.name for s in bound.signature.inputs], _names(bound)
    wide = [
        TrialPlan(sizes, f"spread {value:.9g}", seed + 1, only=name if len(numeric) > 1 else "")
        for name in numeric
        for value in sorted(for_input(found, names.index(name)), key=abs, reverse=True)
        if abs(value) >= 2
    ]
    fractions = [TrialPlan(sizes, values, seed + 1) for values in IN_MANY_ROWS] if _names(bound, ("float",)) else []
    made = in_turns((iter(wide), iter(fractions)))
    yield from itertools.islice((plan for plan in made if tries.takes(plan)), MOST_IN_MANY_ROWS)


def _in_columns(tries: Tries, plan: TrialPlan, columns: int) -> Iterator[TrialPlan]:
    """Yield a call that is refused as a whole for one column at a time: the others may hold codes."""
    for column in range(columns):
        if tries.takes(part := replace(plan, values=f"column-{column} {plan.values}")):
            yield part


def _together(tries: Tries, found: Sequence[Number], seed: int) -> Iterator[TrialPlan]:
    """Yield calls at thresholds of what is computed, then those that draw all inputs at once from all numbers known."""
    names = [s.name for s in tries.bound.signature.inputs]
    numeric = [names.index(n) for n in _names(tries.bound) if tries.bound.args[names.index(n)].dtype != torch.bool]
    solved = []
    for plan, answer in thresholds(tries, numeric, seed):
        solved.append(answer)
        if tries.takes(plan):
            yield plan
    yield from pooled(tries, found, solved, numeric, seed)


def _decades(tries: Tries, seed: int) -> Iterator[TrialPlan]:
    """Yield numbers of all sizes: of fractions all at once and some input by input, of whole ones input by input."""
    names = _names(tries.bound, ("int", "ids", "number", "types", "positions"))
    counted = {i for d in tries.decisions.values() if d.kind == "count" for i in d.inputs}
    places = [s.name for s in tries.bound.signature.inputs]
    small = [TrialPlan({}, v, seed + 1, only=n) for v in SMALL for n in names]
    whole = [TrialPlan({}, TODAY, seed + 1)] if names and not counted else []
    whole += small + [TrialPlan({}, v, seed + 1, only=n) for v in (*WIDE, TODAY) for n in names if places.index(n) not in counted]
    floats = _names(tries.bound, ("float",))
    apart = bool(counted) or len(floats) > 1  # what something is counted by is not to be a billion
    fractions = [TrialPlan({}, v, seed + 1) for v in DECADES] if floats and not counted else []
    alone = [TrialPlan({}, v, seed + 1, only=n) for v in DECADES[: None if counted else 4] for n in floats] if apart else []
    yield from (plan for plan in in_turns(map(iter, (whole, fractions, alone))) if tries.takes(plan))


def _sizes(tries: Tries, guards: Sequence[Guard], numbers: Sequence[int], seed: int) -> Iterator[TrialPlan]:
    """Yield long calls, those on either side of where eager turns, and those at the marks of model and file."""
    bound = tries.bound
    base = example_sizes(bound)
    moving = [d for d in bound.signature.dims if base.get(d.name)]
    marks = list(in_turns((iter(landmarks(bound.module, guards)), iter(numbers))))  # there is room for some of each
    yield from in_turns([_of_dim(tries, dim, base, marks, seed) for dim in moving])


def _long_and_unusual(tries: Tries, dim: Dim, lengths: Sequence[int], seed: int) -> Iterator[TrialPlan]:
    """Yield long calls of numbers that are alike, and with all other sizes as small as they go."""
    least = {d.name: max(d.low, 1) for d in tries.bound.signature.dims if d.name != dim.name}
    for sizes, values in (*(({}, v) for v in MANY_ALIKE), *([(least, "random")] if least else [])):
        plans = (TrialPlan({**sizes, dim.name: size}, values, seed + 1) for size in lengths)
        plan = next((p for p in plans if tries.budget.within(p.sizes, VERY_LONG_CALL)), None)
        if plan is not None and tries.takes(plan):
            yield plan


def _of_dim(tries: Tries, dim: Dim, base: Mapping[str, int], marks: Sequence[int], seed: int) -> Iterator[TrialPlan]:
    seen = {base[dim.name]}

    def plans(sizes: Iterable[int], why: str, most: int = MOST_SIZES) -> Iterator[TrialPlan]:
        made = 0
        for size in sizes:
            plan = TrialPlan({dim.name: size}, "random", seed + 1, why=why)
            fits = tries.budget.affords(plan.sizes) and not too_long(tries, dim.name, size)
            if size not in seen and made < most and fits and tries.takes(plan, finite=False):
                seen.add(size)
                made += 1
                yield plan

    lengths = long_sizes(tries, dim, base)
    yield from plans(lengths, "a long call")
    yield from _long_and_unusual(tries, dim, lengths, seed)
    for turn in turns(tries, dim, base, seed):
        yield from plans(around(dim, (turn,), base[dim.name]), "eager turns there")
    yield from plans(in_a_row(tries, dim, base), "one size after the other")
    yield from plans(around(dim, marks, base[dim.name]), "a number of the model or of the file")
