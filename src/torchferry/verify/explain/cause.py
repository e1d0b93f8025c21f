"""What kind of fault stands at an op, told by the trial, the values around it and the user's source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from torchferry.records import Location
from torchferry.verify.arrays import Array, array, is_float, wide
from torchferry.verify.explain import source_lines as source
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.run.both_sides import Call
from torchferry.verify.run.eager_trace import EagerTrace, Note

NEXT_TO_NOTHING = 1e-4  # relative; what an op with a constant changes, if an optimiser may have taken it for nothing
WITH_A_CONSTANT = ("add", "sub", "mul", "div", "rsub", "add_", "sub_", "mul_", "div_")
# while the model was run for export; in the translation of its ops; in a rewrite afterwards
STAGES = {
    "guard": "capture",
    "branch-frozen": "capture",
    "loop-unrolled": "capture",
    "size-baked": "capture",
    "value-baked": "capture",
    "export-only": "capture",
    "constant-dropped": "the exporter's optimiser",
    "precision": "onnxruntime, which computes half precision in float32",
    "op-semantics": "translation",
}


@dataclass(frozen=True, slots=True)
class Culprit:
    """Where it goes wrong, and what kind of wrong it is (one of STAGES)."""

    location: Location
    cause: str
    guard: str = ""
    expected: Array | None = None  # what eager's op gives there, in the failing trial
    stands: tuple[str, ...] = ()  # the file's values that are the same at the example
    before: tuple[Note, ...] = ()  # the ops up to the last one whose value is in the file


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is known of a failing trial: what eager did at the example and what it did here."""

    bench: Bench
    failing: Judged
    right: EagerTrace
    wrong: EagerTrace

    @property
    def at_the_example(self) -> bool:
        """Whether the example itself fails, and nothing plain agrees."""
        return self.bench.home is None and self.failing.args is self.bench.sides.bound.args

    @property
    def reference(self) -> Call:
        """A call for which the file is right: the example, as far as that goes."""
        return self.bench.home.args if self.bench.home is not None else self.bench.sides.bound.args

    @property
    def resized(self) -> bool:
        """Whether the trial has other sizes than the example."""
        return any(self.failing.trial.sizes.get(n) != size for n, size in self.bench.right_sizes.items())

    def culprit(self, place: Location) -> Culprit:
        """Return the culprit at a place: the line where a number came from that was fixed at export, if one was."""
        if place.file is None or place.line is None:
            return Culprit(place, "size-baked" if self.resized else "op-semantics")
        origin = source.number_origin(place.file, place.line)
        if self.resized:
            frozen = source.conditional(place.file, place.line)
            return Culprit(replace(place, line=origin), "branch-frozen" if frozen else "size-baked")
        if source.takes_value(place.file, origin) and self._ran(place.file, origin):
            return Culprit(replace(place, line=origin), "value-baked")
        return Culprit(place, "op-semantics")

    def _ran(self, file: str, line: int) -> bool:
        """Return whether some op ran at a line: `float(config.scale)` reads no tensor."""
        return any((n.location.file, n.location.line) == (file, line) for n in self.wrong.notes)


def settle(scene: Scene, n: int, matched: int | None, node: str | None, stands: Sequence[str] = ()) -> Culprit:
    """Return the culprit at the n-th op; `matched` is the last op before it whose value is in the file."""
    notes = scene.wrong.notes
    found = _settled(scene, n, matched, node)
    before = tuple(notes[: matched + 1]) if matched is not None else ()
    return replace(found, expected=next(iter(notes[n].values), None), stands=tuple(stands), before=before)


def _settled(scene: Scene, n: int, matched: int | None, node: str | None) -> Culprit:
    notes = scene.wrong.notes
    place = replace(notes[n].location, onnx_node=node)
    if place.file and place.line:
        before = notes[matched].location if matched is not None else Location()
        matched_line = before.line if before.file == place.file and before.line else 0
        if (test := source.export_only(place.file, place.line, matched_line)) is not None:
            return Culprit(replace(place, line=test), "export-only")
    if not scene.resized and _next_to_nothing(scene, n):
        return Culprit(place, "constant-dropped")
    found = scene.culprit(place)
    return replace(found, cause="precision") if found.cause == "op-semantics" and _overflowed(notes[n]) else found


def _overflowed(note: Note) -> bool:
    """Return whether torch ran out of half precision's range."""
    half = {"float16", "bfloat16"} & set(note.dtypes)
    return bool(half) and any(is_float(v) and not np.isfinite(wide(v)).all() for v in note.values)


def _next_to_nothing(scene: Scene, n: int) -> bool:
    """Return whether an op with a constant, at the example, gives nearly what went into it."""
    trace = scene.right if n < len(scene.right.notes) else scene.wrong
    note = trace.notes[n]
    if note.location.op not in WITH_A_CONSTANT or not note.values:
        return False
    given = [v for earlier in trace.notes[max(0, n - 3) : n] for v in earlier.values]
    given += [array(a) for a in scene.reference]
    return any(_nearly(note.values[0], v) for v in given)


def _nearly(one: Array, two: Array) -> bool:
    if one.shape != two.shape or not two.any() or not is_float(one) or not is_float(two):
        return False  # a mask of zeros is nothing times any number
    tiny = float(np.finfo(np.float32).tiny)
    return bool(np.allclose(wide(one), wide(two), rtol=NEXT_TO_NOTHING, atol=tiny, equal_nan=True))
