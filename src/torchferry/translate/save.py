"""The graph as a file: weights inside while they are few, otherwise beside it in a file of their own, each stored once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx_ir as ir

from torchferry.errors import UsageError
from torchferry.files import data_name

INLINE_BYTES = 100 * 2**20  # protobuf ends at 2 GB and is read whole; below this nobody minds
MOST_INLINE = 2**31 - 2**26  # the graph itself wants room too
WORTH_MOVING = 1024  # smaller tensors stay inside even then: shapes and axes must be readable without the data file


def save(model: ir.Model, path: Path, beside: bool | None = None) -> None:
    """Write the model to `path`, its weights beside it where that is asked for, or where they are many and nothing is asked."""
    size = weight_bytes(model)
    if beside is False and size > MOST_INLINE:
        raise UsageError(f"{size:,} bytes of weights do not fit into one file, which ends at 2 GB: leave external_data out")
    if beside or (beside is None and size >= INLINE_BYTES):
        save_external(model, path)
    else:
        ir.save(model, path)


def weight_bytes(model: ir.Model) -> int:
    """Return the size of all initializers."""
    return sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value is not None)


def copy_model(source: Path, destination: Path) -> None:
    """Copy a model file into a workspace; weights beside it are copied to one file beside the copy, which points there."""
    proto = onnx.load(source, load_external_data=False)
    moved = [t for t in _tensors(proto) if t.data_location == onnx.TensorProto.EXTERNAL]
    places = {entry.value for t in moved for entry in t.external_data if entry.key == "location"}
    if not moved:
        shutil.copyfile(source, destination)
        return
    if len(places) > 1:  # several files beside it: gather them in one, tensor by tensor
        save_external(ir.load(source), destination)
        return
    name = data_name(destination.name)
    shutil.copyfile(source.parent / places.pop(), destination.with_name(name))
    for tensor in moved:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
    onnx.save(proto, destination)


def save_external(model: ir.Model, path: Path) -> None:
    """Write the model with its weights beside it, whatever their size."""
    ir.save(model, path, external_data=data_name(path.name), size_threshold_bytes=WORTH_MOVING)


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        yield from graph.initializer
        for attribute in (a for node in graph.node for a in node.attribute):
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                graphs.append(attribute.g)
