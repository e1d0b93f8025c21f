"""A model that opens, and the inputs that it declares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from torchferry.check.running.feeds import Declared
from torchferry.check.running.trace import Tracer
from torchferry.check.types import dtypes
from torchferry.worker import Worker


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that opens: the session's key in the worker, the graph (None: not readable), and what it declares."""

    worker: Worker
    key: str
    home: Path
    scratch: Path
    model: onnx.ModelProto | None
    declared: tuple[Declared, ...]
    optional: tuple[str, ...] = ()

    @classmethod
    def of(cls, worker: Worker, key: str, home: Path, scratch: Path, model: onnx.ModelProto) -> Opened:
        """Return a model with what its graph declares."""
        stored = {t.name for t in model.graph.initializer}
        declared = tuple(_declared(i) for i in model.graph.input if i.name not in stored)
        return cls(worker, key, home, scratch, model, declared, tuple(i.name for i in model.graph.input if i.name in stored))

    def tracer(self) -> Tracer | None:
        return None if self.model is None else Tracer(self.worker, self.model, self.home, self.scratch)


def _declared(value: onnx.ValueInfoProto) -> Declared:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return Declared(value.name, _other_type(value.type), None)
    shape = (
        tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim)
        if kind.HasField("shape")
        else None
    )
    return Declared(value.name, f"tensor({dtypes.word(kind.elem_type)})", shape)


def _other_type(kind: onnx.TypeProto) -> str:
    """Return the word for a type that is no tensor; for a list of tensors as onnxruntime writes it."""
    if kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("tensor_type"):
        return f"seq(tensor({dtypes.word(kind.sequence_type.elem_type.tensor_type.elem_type)}))"
    return kind.WhichOneof("value") or "unknown"
