"""The two sides of a comparison: the eager module, always as a fresh copy, and the file, in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch

from torchferry import eager
from torchferry.records import Bound, Fault, Translated
from torchferry.verify.arrays import Array, array, arrays
from torchferry.worker import Worker

Call = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class BothSides:
    """The eager module and the file, with their names brought into one order."""

    bound: Bound
    file: Translated
    worker: Worker
    session: str  # the worker's key for the file at onnxruntime's default level
    order: tuple[int, ...]  # for each eager output, which of the file's outputs it is compared with
    model: onnx.ModelProto = field(repr=False)  # the file, read once, without weights that lie beside it; nobody changes it

    def eager(self, args: Call, *, seed: int = 0) -> list[Array] | Fault:
        """Return what a fresh copy of the module gives, or what it raised."""
        try:
            return arrays(eager.call_on_made_input(eager.fresh(self.bound.module), args, seed=seed))
        except Exception as error:  # the user's forward may refuse an input in any way it likes
            return Fault.of(error)

    def side_by_side(self, args: Call) -> tuple[list[Array] | Fault, list[Array] | Fault | None]:
        """Return what eager gives, or what it raised, and what the file gives meanwhile; None where eager takes no such call."""
        stopped = self.worker.begin_run(self.session, self.feeds(args))
        want = self.eager(args)
        if isinstance(want, Fault):
            return want, None
        return want, self._in_order(stopped or self.worker.end_run())

    def run(self, args: Call, session: str | None = None) -> list[Array] | Fault:
        """Return what the file gives, in eager's order, or what stopped it."""
        return self._in_order(self.worker.run(session or self.session, self.feeds(args)))

    def _in_order(self, got: list[Array] | Fault) -> list[Array] | Fault:
        return got if isinstance(got, Fault) else [got[i] for i in self.order if i < len(got)]

    def run_at(self, level: str, args: Call) -> list[Array] | Fault:
        """Return what the file gives with onnxruntime's optimisations at a level of `ort.LEVELS`."""
        if level == "all":
            return self.run(args)
        key = self.worker.open(self.file.path, **{**session_options(self.file.settings), "level": level})
        if isinstance(key, Fault):
            return key
        got = self.run(args, key)
        self.worker.close(key)
        return got

    def feeds(self, args: Call) -> dict[str, Array]:
        """Return the arrays that the file takes; an input that the exporter dropped as unused is left out."""
        taken = {s.name for s in self.file.inputs}
        named = {s.name: array(a) for s, a in zip(self.bound.signature.inputs, args, strict=True)}
        return {n: a for n, a in named.items() if n in taken} if taken else named

    def declares(self, args: Call) -> bool:
        """Return whether the file's declared inputs have room for these sizes."""
        declared = {s.name: s.shape for s in self.file.inputs}
        for spec, arg in zip(self.bound.signature.inputs, args, strict=True):
            shape = declared.get(spec.name, ())
            if len(shape) == arg.dim() and any(isinstance(s, int) and s != n for s, n in zip(shape, arg.shape, strict=True)):
                return False
        return True


def open_sides(bound: Bound, file: Translated, worker: Worker) -> BothSides | Fault:
    """Return both sides, ready to run, or why onnxruntime does not take the file."""
    key = worker.open(file.path, **session_options(file.settings))
    if isinstance(key, Fault):
        return key
    model = onnx.load(str(file.path), load_external_data=False)
    return BothSides(bound, file, worker, key, output_order(bound.outputs, [o.name for o in file.outputs]), model)


def session_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a file's settings that a session takes."""
    return {k: v for k, v in settings.items() if k in ("level", "disabled", "config", "libraries")}


def output_order(wanted: Sequence[str], given: Sequence[str]) -> tuple[int, ...]:
    """Return where each wanted output stands in the file: by name where the names are the same, else by position."""
    if set(wanted) == set(given) and len(set(given)) == len(given):
        return tuple(list(given).index(n) for n in wanted)
    return tuple(range(len(given)))
