"""The numbers that a file holds: initializers and constants of the graph and of what is nested in it, read when asked for.

An `Identity` of an initializer is one too: exporters keep equal parameters once and give the others their names that way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from torchferry.verify.arrays import Array

PACKED = ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")  # several numbers in a byte


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of the file; `values()` reads it, from the file beside the graph where it lies there."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    values: Callable[[], Array] = field(repr=False)
    takers: tuple[tuple[str, int], ...] = ()  # the operators that take it, and as which input
    graph: str = ""  # where it is nested: "" for the graph itself

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its numbers have fractions."""
        return self.dtype.kind == "f" or self.dtype.name.startswith(("bfloat", "float"))


def stored(model: onnx.ModelProto, folder: Path) -> list[Stored]:
    """Return the tensors of a file in its own order, empty ones and texts left out; `folder` is where the file lies."""
    return list(_in_graph(model.graph, folder, ""))


def graphs(graph: onnx.GraphProto, inside: str = "") -> Iterator[tuple[str, onnx.GraphProto]]:
    """Yield a graph and all that are nested in it, each with the name of its place."""
    yield inside, graph
    for node in graph.node:
        for attribute in node.attribute:
            for n, inner in enumerate([attribute.g] if attribute.HasField("g") else attribute.graphs):
                yield from graphs(inner, f"{inside}/{node.name or node.output[0]}.{attribute.name}{n or ''}")


def constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the tensor of a Constant node; None for any other node, and for a constant that is no tensor."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for attribute in node.attribute:
        match attribute.name:
            case "value":
                return attribute.t
            case "value_float" | "value_floats":
                numbers = np.float32(attribute.floats if attribute.name.endswith("s") else attribute.f)
                return numpy_helper.from_array(np.asarray(numbers))
            case "value_int" | "value_ints":
                whole = np.int64(attribute.ints if attribute.name.endswith("s") else attribute.i)
                return numpy_helper.from_array(np.asarray(whole))
    return None


def _in_graph(top: onnx.GraphProto, folder: Path, inside: str) -> Iterator[Stored]:
    for place, graph in graphs(top, inside):
        takers = _takers(graph)
        held: dict[str, onnx.TensorProto] = {t.name: t for t in graph.initializer}
        held |= {n.output[0]: t for n in graph.node if (t := constant(n)) is not None}
        for node in graph.node:
            if node.op_type == "Identity" and node.input[0] in held:
                held[node.output[0]] = held[node.input[0]]
        for name, tensor in held.items():
            if (found := _read(name, tensor, folder, tuple(takers[name]), place)) is not None:
                yield found


def _takers(graph: onnx.GraphProto) -> defaultdict[str, list[tuple[str, int]]]:
    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for _, inner in graphs(graph):
        for node in inner.node:
            for place, name in enumerate(node.input):
                found[name].append((node.op_type, place))
        for place, output in enumerate(inner.output):
            found[output.name].append(("", place))
    return found


def _read(name: str, tensor: onnx.TensorProto, folder: Path, takers: tuple[tuple[str, int], ...], place: str) -> Stored | None:
    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    if kind in ("STRING", "UNDEFINED") or 0 in tensor.dims:
        return None
    dtype, shape = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)), tuple(tensor.dims)
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return Stored(name, dtype, shape, lambda: numpy_helper.to_array(tensor), takers, place)
    if kind in PACKED:
        return None
    where = {e.key: e.value for e in tensor.external_data}
    path, start = folder / where["location"], int(where.get("offset", 0))
    return Stored(name, dtype, shape, lambda: _mapped(path, start, dtype, shape), takers, place)


def _mapped(path: Path, start: int, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """Return a view of the file's own pages: nothing is copied."""
    raw = np.memmap(path, np.uint8, "r", start, (math.prod(shape) * dtype.itemsize,))
    return np.asarray(raw).view(dtype).reshape(shape)
