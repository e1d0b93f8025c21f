"""Every value inside the file, in one session: a copy in which all intermediates are outputs, run without optimisation.

Values that hang on large weights alone are left out: they are the same for every input, and would be most of what is moved.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import numpy_helper

from torchferry.files import workspace
from torchferry.records import Fault
from torchferry.verify.arrays import Array
from torchferry.verify.run.both_sides import BothSides, Call

LARGE_WEIGHT = 2**16  # elements


@dataclass(frozen=True, slots=True)
class Inside:
    """The file's nodes and values, and a session that gives all of them."""

    model: onnx.ModelProto  # without its weights where these lie beside the file
    names: tuple[str, ...]  # of the values, in the order in which the nodes make them
    sides: BothSides
    session: str
    constants: dict[str, Array]  # small ones: a number taken from the example may be among them

    def values(self, args: Call) -> dict[str, Array] | Fault:
        """Return every intermediate value by name, or what stopped the run."""
        got = self.sides.worker.run(self.session, self.sides.feeds(args), list(self.names))
        return got if isinstance(got, Fault) else {**self.constants, **dict(zip(self.names, got, strict=True))}

    def node_of(self, value: str) -> onnx.NodeProto | None:
        """Return the node that makes a value."""
        return next((n for n in self.model.graph.node if value in n.output), None)

    def taker_of(self, value: str) -> onnx.NodeProto | None:
        """Return the first node that takes a value."""
        return next((n for n in self.model.graph.node if value in n.input), None)


@contextmanager
def opened(sides: BothSides) -> Iterator[Inside | Fault]:
    """Give the file with its inside out; the copy is gone afterwards."""
    path = Path(sides.file.path)
    model = sides.model
    names = telling(model.graph)
    with workspace() as folder:
        key = sides.worker.open(expose(model, names, path, folder / "inside.onnx"), level="none")
        if isinstance(key, Fault):
            yield key
            return
        yield Inside(model, names, sides, key, _small_constants(model.graph))
        sides.worker.close(key)


def telling(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Return the values worth looking at, in the nodes' order: all but those that hang on large weights alone."""
    fed, heavy = {i.name for i in graph.input}, {t.name for t in graph.initializer if _elements(t) > LARGE_WEIGHT}
    fed -= {t.name for t in graph.initializer}
    names: list[str] = []
    for node in graph.node:
        outputs = [o for o in node.output if o]
        moves = bool(fed & set(node.input)) or any(a.HasField("g") for a in node.attribute)
        if moves:
            fed.update(outputs)
        elif heavy & set(node.input):
            heavy.update(outputs)
            continue
        names += outputs
    return tuple(names)


def _elements(tensor: onnx.TensorProto) -> int:
    return math.prod(tensor.dims)


def _small_constants(graph: onnx.GraphProto) -> dict[str, Array]:
    inline = [t for t in graph.initializer if t.data_location != onnx.TensorProto.EXTERNAL and _elements(t) <= LARGE_WEIGHT]
    return {t.name: numpy_helper.to_array(t) for t in inline if t.data_type != onnx.TensorProto.STRING}


def expose(model: onnx.ModelProto, names: Sequence[str], beside: Path, to: Path) -> Path:
    """Write the model so that it also gives the values of these names; weights beside it are linked, not copied."""
    given = len(model.graph.output)
    known = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    to.write_bytes(model.SerializeToString())
    del model.graph.output[given:]  # the caller's model is as it was; a copy would double a large one
    for place in {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}:
        if not (to.parent / place).exists():
            link(beside.parent / place, to.parent / place)
    return to


def link(source: Path, target: Path) -> None:
    """Put a file of weights beside a copy of the graph without copying it."""
    if source.stat().st_dev == target.parent.stat().st_dev:
        os.link(source, target)  # onnxruntime does not follow links out of the model's folder
    else:
        target.symlink_to(source.resolve())
