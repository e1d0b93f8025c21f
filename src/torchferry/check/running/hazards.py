"""What goes wrong without an error: NaN that a model makes itself, sizes that disagree, lookups that are clamped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph
from torchferry.check.reading.expressions import evaluate
from torchferry.check.running.feeds import Declared
from torchferry.check.running.trace import Failure, Feed, Tracer, ancestors, shape_of
from torchferry.records import Fault, Location
from torchferry.records.findings import MaskedRowNan, NanAppears, SizesDisagree

PLUMBING = frozenset({"Cast", "Dropout", "Identity", "Reshape", "Transpose"})


def disagreeing(declared: Sequence[Declared], shapes: Mapping[str, tuple[int, ...] | None]) -> Iterator[SizesDisagree]:
    """Yield the inputs whose sizes contradict what the file ties together: one name, two sizes; or `past + sequence`."""
    sizes: dict[str, tuple[int, str, int]] = {}
    rest: list[tuple[str, int, str, int]] = []
    for spec in declared:
        shape = shapes.get(spec.name)
        if shape is None or spec.shape is None or len(shape) != len(spec.shape):
            continue
        for axis, size in enumerate(spec.shape):
            if not isinstance(size, str):
                continue
            if size in sizes:
                wants, other, other_axis = sizes[size]
                if wants != shape[axis]:
                    where = Location(input_name=spec.name)
                    yield SizesDisagree(axis, size, wants, shape[axis], other, other_axis, location=where)
            elif size.isidentifier():
                sizes[size] = (shape[axis], spec.name, axis)
            else:
                rest.append((spec.name, axis, size, shape[axis]))
    known = {name: size for name, (size, _, _) in sizes.items()}
    come_to = {expression: evaluate(expression, known) for _, _, expression, _ in rest}
    for name, axis, expression, got in rest:
        should = come_to[expression]
        if should is not None and should != got:
            yield SizesDisagree(axis, expression, should, got, location=Location(input_name=name))


def may_be_clamped(model: onnx.ModelProto) -> bool:
    """Say whether a lookup by counted positions is there, which onnxruntime turns into a slice that forgives any overrun."""
    for part in graph.graphs(model):
        ranges = {o for n in part.node if n.op_type == "Range" for o in n.output}
        if ranges and any(n.op_type == "Gather" and ranges & ancestors(part, n.input[1]) for n in part.node if len(n.input) > 1):
            return True
    return False


def resized_batch(tracer: Tracer, declared: Sequence[Declared], feed: Feed) -> Failure | None:
    """Return the Resize to constant sizes, if any, that makes another number of samples of a batch: it does so without a word."""
    fixed = graph.constants(tracer.model.graph)
    to = [(n, fixed[n.input[3]]) for n in tracer.model.graph.node if n.op_type == "Resize" and fixed.keys() & set(n.input[3:4])]
    if not to or all(isinstance((d.shape or (None,))[0], int) for d in declared if d.shape != ()):
        return None
    made = tracer.values(feed, only=[n.input[0] for n, _ in to])
    known = {**feed, **(made if not isinstance(made, Fault) else {})}
    for node, sizes in to:
        shape = shape_of(known.get(node.input[0]))
        if shape is not None and len(shape) == len(sizes) > 2 and shape[0] != sizes[0] and not graph.attributes(node).get("axes"):
            return Failure(graph.label(node), "Resize", Fault("Silent", f"{shape[0]} samples come out as {sizes[0]}"))
    return None


def nan(tracer: Tracer, feed: Feed, outputs: Sequence[Any]) -> list[NanAppears] | list[MaskedRowNan]:
    """Return where NaN begins, if outputs have it and the feed has not."""
    if not any(_has_nan(o) for o in outputs) or any(_has_nan(v) for v in feed.values()):
        return []
    values = tracer.values(feed)
    if isinstance(values, Fault):
        return []
    known = {**graph.constants(tracer.model.graph), **feed, **values}
    first = [
        n
        for n in graph.ordered(tracer.model.graph)
        if any(_has_nan(known.get(o)) for o in n.output) and not any(_has_nan(known.get(i)) for i in n.input)
    ]
    if not first:
        return []
    masked = [n for n in first if n.op_type == "Softmax" and _masked_rows(n, known)]
    if masked:
        return [_masked(tracer.model, masked[0], known, tuple(graph.label(m) for m in masked))]
    node = first[0]
    made = tuple(o for o in node.output if _has_nan(known.get(o)))
    return [NanAppears(made, location=Location(onnx_node=graph.label(node), op=node.op_type))]


def _masked(model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, Any], nodes: tuple[str, ...]) -> MaskedRowNan:
    rows = _masked_rows(node, known)
    where = Location(onnx_node=graph.label(node), op="Softmax")
    return MaskedRowNan(rows[0], len(rows), nodes, _is_attention(model, node), location=where)


def _masked_rows(node: onnx.NodeProto, known: Mapping[str, Any]) -> list[tuple[int, ...]]:
    scores = known.get(node.input[0])
    if not isinstance(scores, np.ndarray) or not scores.ndim:
        return []
    axis = int(graph.attributes(node).get("axis", -1)) % scores.ndim
    rows = np.all(np.isneginf(scores.astype(np.float64)), axis=axis)
    return [tuple(int(i) for i in at) for at in np.argwhere(rows)]


def _is_attention(model: onnx.ModelProto, softmax: onnx.NodeProto) -> bool:
    """Whether the file itself says that PyTorch's attention operator made the softmax, and it feeds a product with values.

    That operator gives zeros for a row with nothing to see; the same arithmetic written out in a model gives NaN in PyTorch too.
    """
    told = " ".join([softmax.name, *(p.value for p in softmax.metadata_props if isinstance(p.value, str))])
    if not re.search(r"scaled_dot_product|(?<![a-z])sdpa(?![a-z])", told):
        return False
    readers, waiting, seen = graph.readers(model.graph), [softmax], 0
    while waiting and seen < 20:
        node, seen = waiting.pop(), seen + 1
        for reader in (r for o in node.output for r in readers.get(o, ())):
            if reader.op_type == "MatMul" and reader.input[0] in node.output:
                return True
            if reader.op_type in PLUMBING:
                waiting.append(reader)
    return False


def _has_nan(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fV":
        return False
    return bool(np.isnan(value.astype(np.float64)).any())
