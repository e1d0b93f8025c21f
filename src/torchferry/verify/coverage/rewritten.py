"""A copy of the file with other numbers in the place of some of its weights; all else, weights beside it too, is as it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
from onnx import helper

from torchferry.verify.arrays import Array
from torchferry.verify.coverage.stored import graphs
from torchferry.verify.run.both_sides import BothSides
from torchferry.verify.run.intermediates import link

BESIDE = 2**20  # bytes from which on a new weight is written beside the graph: one message holds no more than 2 GB
DATA = "redrawn.data"
Place = tuple[str, str]  # a graph, as `stored.graphs` names it, and a tensor in it


def rewrite(sides: BothSides, numbers: Mapping[Place, Array], folder: Path) -> tuple[Path, onnx.ModelProto]:
    """Write the file into a folder with these numbers in it; return where it is, and what is in it."""
    model = copied(sides.model)
    with (folder / DATA).open("wb") as data:
        for place, graph in list(graphs(model.graph)):
            here = {name: array for (where, name), array in numbers.items() if where == place}
            if here:
                _replace(graph, here, data)
    return written(model, Path(sides.file.path), folder), model


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy that may be changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def written(model: onnx.ModelProto, beside: Path, folder: Path) -> Path:
    """Write a changed copy of a file into a folder, the weights that lie beside that file linked; return where it is."""
    for where in {e.value for t in _tensors(model) for e in t.external_data if e.key == "location"}:
        if not (folder / where).exists():
            link(beside.parent / where, folder / where)
    copy = folder / beside.name
    copy.write_bytes(model.SerializeToString())
    return copy


def _replace(graph: onnx.GraphProto, numbers: Mapping[str, Array], data: BinaryIO) -> None:
    held = {t.name: t for t in graph.initializer}
    for node in list(graph.node):
        name = node.output[0] if node.output else ""
        if name not in numbers or name in held:
            continue
        graph.node.remove(node)  # a Constant, or an Identity of another weight
        held[name] = graph.initializer.add()
    for name, array in numbers.items():
        if name in held:
            _fill(held[name], name, array, data)


def _fill(tensor: onnx.TensorProto, name: str, array: Array, data: BinaryIO) -> None:
    """Put numbers into a tensor of the graph; many of them beside it."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor.Clear()
    tensor.name, tensor.data_type = name, kind
    tensor.dims.extend(array.shape)
    whole = np.ascontiguousarray(array)
    if whole.nbytes < BESIDE:
        tensor.raw_data = whole.tobytes()
        return
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", DATA), ("offset", str(data.tell())), ("length", str(whole.nbytes))):
        tensor.external_data.add(key=key, value=value)
    data.write(whole.view(np.uint8).reshape(-1).data)


def _tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    inline = [a.t for _, g in graphs(model.graph) for n in g.node for a in n.attribute if a.HasField("t")]
    return [t for _, g in graphs(model.graph) for t in g.initializer] + inline
