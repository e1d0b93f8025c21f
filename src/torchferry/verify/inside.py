"""Every value inside the file: a copy of it in which all intermediates are outputs, run without optimisation."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx

from torchferry.records import Fault
from torchferry.verify.arrays import Array
from torchferry.verify.sides import Call, Sides


@dataclass(frozen=True, slots=True)
class Inside:
    """The file's nodes and values, and a session that gives all of them."""

    model: onnx.ModelProto  # without its weights where these lie beside the file
    names: tuple[str, ...]  # of the values, in the order in which the nodes make them
    sides: Sides
    session: str

    def values(self, args: Call) -> dict[str, Array] | Fault:
        """Return every intermediate value by name, or what stopped the run."""
        got = self.sides.worker.run(self.session, self.sides.feeds(args), list(self.names))
        return got if isinstance(got, Fault) else dict(zip(self.names, got, strict=True))

    def node_of(self, value: str) -> onnx.NodeProto | None:
        """Return the node that makes a value."""
        return next((n for n in self.model.graph.node if value in n.output), None)


@contextmanager
def opened(sides: Sides) -> Iterator[Inside | Fault]:
    """Give the file with its inside out; the copy is gone afterwards."""
    path = Path(sides.file.path)
    model = onnx.load(str(path), load_external_data=False)
    names = tuple(o for n in model.graph.node for o in n.output if o)
    with tempfile.TemporaryDirectory(prefix=".torchferry-") as folder:
        key = sides.worker.open(expose(model, names, path, Path(folder) / "inside.onnx"), level="none")
        if isinstance(key, Fault):
            yield key
            return
        yield Inside(model, names, sides, key)
        sides.worker.close(key)


def expose(model: onnx.ModelProto, names: Sequence[str], beside: Path, to: Path) -> Path:
    """Write the model so that it also gives the values of these names; weights beside it are linked, not copied."""
    given = len(model.graph.output)
    known = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    to.write_bytes(model.SerializeToString())
    del model.graph.output[given:]  # the caller's model is as it was; a copy would double a large one
    for place in {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}:
        if not (to.parent / place).exists():
            _link(beside.parent / place, to.parent / place)
    return to


def _link(source: Path, target: Path) -> None:
    if source.stat().st_dev == target.parent.stat().st_dev:
        os.link(source, target)  # onnxruntime does not follow links out of the model's folder
    else:
        target.symlink_to(source.resolve())
