"""Replay, step by step: does the file compute what eager does if at each step it is given eager's own numbers?

No two right kernels give the same last bits, and a model may make anything of them: a chaotic recurrence, a difference of
nearly equal numbers, the larger of two. So the file is run from values of eager's instead of its own, wherever one of its
values is eager's but for the last bits; each time it gets further. If it arrives at eager's outputs, eager's outputs are
what the file computes with its roundings moved within their size, and the difference is rounding. If it does not, the file
does something else, however chaotic the model is.

The same goes for places: where keys are equal, and eager picked another of them than the file, eager's pick is put in the
file's place, at that operator alone, and only where the keys that both found are the same number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from torch.nn.attention import SDPBackend, sdpa_kernel

from torchferry import eager
from torchferry.files import workspace
from torchferry.records import Fault, Location
from torchferry.verify.arrays import PRECISION, Array, array, is_float, wide
from torchferry.verify.run.both_sides import BothSides, Call
from torchferry.verify.run.eager_trace import BOUNDED, EXACT, Note, record
from torchferry.verify.run.intermediates import telling
from torchferry.verify.run.subgraph import between

ROUNDS = 400  # runs of a stretch of the file; each gets further, or it is over
STRETCH = 32  # values that are looked at in one run
UNITS = 4.0  # units in the last place that a value may be off by and still be eager's
TIMES_LOST = 2.0  # what a sum loses in other orders, beside what it loses if taken in turn
MOST_BYTES = 256 * 2**20  # of a file with its weights, and of eager's values, that are replayed
MOST_VALUES = 2**25
MOST_AXES, MOST_TURNED = 5, 2**12  # of values that are also looked for with their axes in another order
SAMPLE = 16
# what rounds to zero: the smallest normal numbers; halves are computed in float32, and keep theirs
LEAST = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-24, "bfloat16": 2.0**-126}
# operators of a file that are exactly rounded, or compute nothing
ONE_ANSWER = frozenset((
    "Constant", "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Floor", "Ceil", "Round", "Sign", "Relu", "Clip", "Min", "Max",
    "Mod", "Sqrt", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Not", "And", "Or", "Where", "Cast", "Reshape",
    "Transpose", "Squeeze", "Unsqueeze", "Slice", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND",
    "Concat", "Expand", "Identity", "Flatten", "Split", "Pad", "Tile", "Shape", "ConstantOfShape", "Range", "MaxPool",
    "ReduceMax", "ReduceMin",
))  # fmt: skip
# what torch calls the operators whose order among equal keys it leaves open, and what ONNX makes of them
OPEN = ("topk", "sort", "argsort", "kthvalue", "median", "mode", "msort")
# in order? what has just given way looked at anew? at which level of optimisation?
WAYS = ((False, False, "none"), (True, False, "none"), (False, True, "none"), (False, True, "all"))


@dataclass(frozen=True, slots=True)
class Tie:
    """An operator of eager at which equal keys were picked in another order."""

    place: Location
    rounded: bool  # its keys were computed by operators that round: that two are equal is an accident of the call


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay came to: the file's outputs from eager's own steps, and from its own."""

    eager: tuple[Array, ...]  # eager's own outputs, with attention in its plain steps
    outputs: tuple[Array, ...]  # the file's, in eager's order
    own: tuple[Array, ...]  # of the file as it is, at the level of optimisation that was replayed
    ties: tuple[Tie, ...] = ()
    put: int = 0  # values of the file that gave way to eager's


def replays(sides: BothSides, args: Call) -> Iterator[Replayed]:
    """Yield the file's outputs with eager's own steps put in for the file's, nothing where that cannot be done.

    Where several of eager's values are near one of the file's, the nearest is taken, and in another replay the first that
    is not taken yet: a mean of squares and the square of the mean may be nearer to each other than either is to its like.
    In a third, what is made of a value that has just given way is looked at anew: it may have been near another by chance.
    In a fourth the file is optimised as it will be, as far as it can be with its steps in view: a tie may break another way.
    """
    path = Path(sides.file.path)
    if path.stat().st_size > MOST_BYTES or eager.weight_bytes(sides.bound.module) > MOST_BYTES:
        return
    with sdpa_kernel(SDPBackend.MATH):  # torch's own definition of its fused attention, which has steps to go by
        trace = record(eager.fresh(sides.bound.module), args, keep=True, prefix=sides.bound.prefix)
    if trace.error is not None or sum(v.size for n in trace.notes for v in n.values) > MOST_VALUES:
        return
    model = onnx.load(str(path))
    outputs = tuple(array(o) for o in trace.outputs)
    for in_order, one_by_one, level in WAYS:
        replayed = _Replay(sides, model, _Steps(trace.notes, outputs, in_order), one_by_one, level).run(sides.feeds(args))
        if replayed is not None:
            yield replace(replayed, eager=outputs)


class _Replay:
    def __init__(self, sides: BothSides, model: onnx.ModelProto, steps: _Steps, one_by_one: bool, level: str) -> None:
        self.sides, self.model, self.steps, self.one_by_one, self.level = sides, model, steps, one_by_one, level
        self.names = telling(model.graph)
        self.outputs = [model.graph.output[i].name for i in sides.order if i < len(model.graph.output)]
        self.makers = {o: n for n in model.graph.node for o in n.output if o}
        self.ties: list[Tie] = []

    def run(self, feeds: Mapping[str, Array]) -> Replayed | None:
        """Return the outputs from eager's own steps, a stretch of the file at a time."""
        own = self._values(feeds, self.outputs if self.level == "none" else [*self.names, *self.outputs])
        put, moved, stretch = dict(feeds), 0, STRETCH
        for _ in range(ROUNDS):
            ahead = [n for n in self.names if n not in put]
            values = self._values(put, ahead[:stretch])
            if values is None or own is None:
                return None
            known = {**put, **values}
            steps = self._anchored({n: self._eagers(n, value, known) for n, value in values.items()}, values, put)
            moved += sum(e is not None and e is not values[n] for n, e in steps.items())
            put |= {n: e for n, e in steps.items() if e is not None}
            if any(e is not None for e in steps.values()):
                stretch = STRETCH
            elif stretch < len(ahead):
                stretch *= 4  # the file has values of its own here, that eager has none of
            else:
                last = self._values(put, self.outputs)
                ends = [tuple(v[n] for n in self.outputs) for v in (last, own) if v is not None]
                return Replayed((), ends[0], ends[1], tuple(dict.fromkeys(self.ties)), moved) if len(ends) == 2 else None
        return None

    def _anchored(
        self, steps: Mapping[str, Array | None], values: Mapping[str, Array], put: Mapping[str, Array]
    ) -> dict[str, Array | None]:
        """Return the steps that may be taken for eager's.

        What an operator with one right answer makes of eager's own numbers is left as it is, however near another value of
        eager's lies: a floor that eager does not have must not give way to what it is the floor of.
        """
        kept = dict(steps)
        eagers, moved = {*put, "", *(t.name for t in self.model.graph.initializer)}, set[str]()
        for node in self.model.graph.node:
            given = set(node.input)
            for name in set(node.output) - set(put):
                if node.op_type in ONE_ANSWER and given <= eagers:
                    eagers.add(name)
                    kept |= {name: values[name]} if name in values else {}
                elif self.one_by_one and given & moved:
                    moved.add(name)
                    kept |= {name: None} if name in kept else {}
                elif kept.get(name) is not None and kept[name] is not values[name]:
                    moved.add(name)
        return kept

    def _values(self, put: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array] | None:
        """Return some values, computed from those that are put in."""
        wanted = [n for n in dict.fromkeys(names) if n not in put]
        here = {n: put[n] for n in names if n in put}
        if not wanted:
            return here
        with workspace() as folder:
            file = folder / "rest.onnx"
            rest = between(self.model, put, wanted)
            for node in rest.graph.node:  # one of a node's outputs may have given way to eager's, and another not
                node.output[:] = [f"{o}.own" if o in put else o for o in node.output]
            file.write_bytes(rest.SerializeToString())
            key = self.sides.worker.open(file, level=self.level)
            if isinstance(key, Fault):
                return None
            taken = {i.name for i in rest.graph.input}
            got = self.sides.worker.run(key, {n: v for n, v in put.items() if n in taken}, wanted)
            self.sides.worker.close(key)
        return None if isinstance(got, Fault) else {**here, **dict(zip(wanted, got, strict=True))}

    def _eagers(self, name: str, value: Array, values: Mapping[str, Array]) -> Array | None:
        """Return eager's own numbers for a value that is the same but for the last bits, or a tie; the value itself if equal."""
        if not isinstance(value, np.ndarray) or not value.size:
            return None
        if is_float(value):
            return self.steps.near(name, value)
        node = self.makers.get(name)
        if node is None or value.dtype.kind not in "iu" or node.op_type != "TopK" or name != node.output[1]:
            return None
        keys = values.get(node.input[0])
        tie = self.steps.tied(value, keys, _axis(node)) if keys is not None else None
        if tie is None:
            return None
        self.ties.append(tie[1])
        return tie[0]


def _axis(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "axis"), -1)


class _Steps:
    """Eager's values, to be asked for one that is the file's but for rounding."""

    def __init__(self, notes: Sequence[Note], outputs: Sequence[Array], in_order: bool) -> None:
        groups: dict[tuple[int, str], list[tuple[Array, float]]] = defaultdict(list)
        for value, note in [*((v, n) for n in notes for v in n.values), *((o, None) for o in outputs)]:
            if value.dtype.name in PRECISION and value.size:
                groups[value.size, value.dtype.name].append((value, _slack(value, note)))
        self._groups = {key: _Group(values, UNITS * PRECISION[key[1]], in_order) for key, values in groups.items()}
        self._picks = [(n, _rounded(notes, n)) for n in notes if n.location.op in OPEN and n.keys is not None]

    def near(self, name: str, value: Array) -> Array | None:
        """Return eager's value for one of the file's, if rounding may have moved it there and did."""
        group = self._groups.get((value.size, value.dtype.name))
        return group.near(name, value) if group is not None else None

    def tied(self, places: Array, keys: Array, axis: int) -> tuple[Array, Tie] | None:
        """Return eager's places for a file's, where both find the same keys, and the operator that picked them."""
        for note, rounded in self._picks:
            if note.keys is None or note.keys.shape != keys.shape or not np.array_equal(note.keys, keys):
                continue
            for other in note.values[note.location.op != "argsort" :]:  # the others give the keys first, which may be whole too
                if other.dtype.kind not in "iu" or other.size != places.size:
                    continue
                theirs = other.reshape(places.shape).astype(places.dtype)
                one, two = (np.take_along_axis(keys, p.astype(np.int64), axis) for p in (places, theirs))
                if not np.array_equal(theirs, places) and np.array_equal(one, two):
                    return theirs, Tie(note.location, rounded)
        return None


def _rounded(notes: Sequence[Note], note: Note) -> bool:
    """Return whether an operator that rounds had a part in what another was given."""
    ahead, seen = list(note.takes), set[int]()
    while ahead:
        at = ahead.pop()
        if at not in seen:
            seen.add(at)
            if notes[at].location.op not in EXACT:
                return True
            ahead += notes[at].takes
    return False


class _Group:
    """Values of one size and dtype, compared with another all at once."""

    def __init__(self, values: Sequence[tuple[Array, float]], unit: float, in_order: bool) -> None:
        self._in_order, self._taken = in_order, dict[str, int]()
        self._values = [v for v, _ in values]
        self._flat = np.stack([wide(v).ravel() for v in self._values])
        slack = np.array([s for _, s in values])[:, None]
        flushed = np.where(slack > 0, LEAST[self._values[0].dtype.name], 0.0)  # a kernel may give 0 for what is no normal number
        self._allowed = unit * (slack + np.abs(np.nan_to_num(self._flat, posinf=0.0, neginf=0.0))) + flushed

    def near(self, name: str, value: Array) -> Array | None:
        """Return the value that is near enough to be the same."""
        place = self._place(name, wide(value).ravel())
        theirs = self._values[place].reshape(value.shape) if place is not None else self._turned(value)
        return value if theirs is not None and np.array_equal(theirs, value, equal_nan=True) else theirs

    def _place(self, name: str, flat: Array) -> int | None:
        few = slice(None, None, max(1, flat.size // SAMPLE))  # most are ruled out by a few of their numbers
        candidates = np.flatnonzero(self._worst(slice(None), few, flat) <= 1)
        worst = self._worst(candidates, slice(None), flat)
        near = candidates[worst <= 1]
        if not near.size or not self._in_order:
            return int(candidates[worst.argmin()]) if near.size else None
        others = {place for other, place in self._taken.items() if other != name}
        self._taken[name] = next((int(n) for n in near if n not in others), int(near[0]))
        return self._taken[name]

    def _worst(self, places: Any, columns: slice, flat: Array) -> Array:
        """Return how far some values are from a given one, as the worst ratio to what is allowed."""
        values, allowed, flat = self._flat[places, columns], self._allowed[places, columns], flat[columns]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            same = (values == flat) | (np.isnan(values) & np.isnan(flat))
            worst = np.where(same, 0.0, np.abs(values - flat) / allowed).max(axis=1, initial=0.0)
        return np.nan_to_num(worst, nan=np.inf)

    def _turned(self, value: Array) -> Array | None:
        """Return the value that is near enough with its axes in another order."""
        if value.ndim < 2 or value.size > MOST_TURNED:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(self._flat.sum(axis=1) - wide(value).sum()) <= self._allowed.sum(axis=1)  # whatever the order
        for theirs, allowed in ((self._values[n], self._allowed[n]) for n in np.flatnonzero(near)):
            if theirs.ndim != value.ndim or sorted(theirs.shape) != sorted(value.shape) or theirs.ndim > MOST_AXES:
                continue
            for order in permutations(range(value.ndim)):
                turned, room = theirs.transpose(order), allowed.reshape(theirs.shape).transpose(order)
                with np.errstate(invalid="ignore", over="ignore"):
                    if turned.shape == value.shape and bool((np.abs(wide(turned) - wide(value)) <= room).all()):
                        return np.ascontiguousarray(turned)
        return None


def _slack(value: Array, note: Note | None) -> float:
    """Return what numbers may be off by that are small beside the others: little where there is one right result.

    A sum errs with the root of its length and with the size of what it adds up, a bounded function with that of its range.
    """
    if note is None or note.location.op in EXACT:
        return 0.0
    if note.location.op in BOUNDED:
        return 2 / UNITS  # two units in the last place of its range: onnxruntime's sigmoid is off by 1.4e-7 at -12
    if note.terms > 1:
        return max(
            max(_usual(value), note.scale) * note.terms**0.5, TIMES_LOST * note.lost / (UNITS * PRECISION[value.dtype.name])
        )
    return _usual(value)


def _usual(value: Array) -> float:
    """Return the size of a value's ordinary numbers: those that a mask set to -1e9 must not make all others look alike."""
    sizes = np.abs(wide(value))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.quantile(sizes, 0.25)) if sizes.size else 0.0
