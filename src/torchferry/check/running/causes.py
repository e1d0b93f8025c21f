"""Why a node failed: read from the values that reached it, not only from the runtime's words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph
from torchferry.check.running.trace import Failure, Feed, Tracer, ancestors, shape_of
from torchferry.foreign import onnxruntime as ort
from torchferry.foreign.onnxruntime_messages import memory_refused
from torchferry.records import Fault, Location
from torchferry.records.findings import (
    AllocationTooLarge,
    ConditionNotScalar,
    DivisionByZero,
    EmptyAxis,
    IndexOutOfRange,
    NodeFailed,
    NodeFailure,
    RunFailed,
    RuntimeDied,
)
from torchferry.worker import DEATHS

LOOKUPS = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter", "OneHot"})


def explain(tracer: Tracer, failure: Failure, feed: Feed) -> NodeFailed:
    """Return what made a node fail on a feed: an index, an empty axis, a zero, sizes that do not go together."""
    place = next((p for p in graph.places(tracer.model) if p.label == failure.node), None)
    if failure.fault.type_name in DEATHS:
        return RuntimeDied(NodeFailure(failure.fault.text), location=Location(onnx_node=failure.node or None))
    if place is None:
        where = Location(onnx_node=failure.node or None, op=failure.op or None)
        return RunFailed(NodeFailure(ort.said(failure.fault.text)), location=where)
    values = _reaching(tracer, place, feed)
    told = NodeFailure(
        ort.said(failure.fault.text),
        {i: s for i in place.node.input if (s := shape_of(values.get(i))) is not None},
        tuple(feeding(tracer.model, place.node)),
    )
    causes = (examine(place.node, values, feed, told) for examine in CAUSES)
    cause = next((c for c in causes if c is not None), RunFailed(told))
    return replace(cause, location=Location(onnx_node=place.label, op=place.node.op_type))


def _reaching(tracer: Tracer, place: graph.NodePlace, feed: Feed) -> dict[str, Any]:
    """Return the values that a node of the main graph read when it failed."""
    known = {**graph.constants(tracer.model.graph), **feed}
    known |= {t.name: _Sized(tuple(t.dims)) for t in tracer.model.graph.initializer if t.name not in known}
    top = place.label if place.owner is None else graph.label(place.owner)
    made = tracer.values(feed, before=top, only=[i for i in place.node.input if i not in known])
    return known | (made if not isinstance(made, Fault) else {})


class _Sized(np.ndarray):
    """A stand-in for weights that are too large to read: it has their shape."""

    def __new__(cls, shape: tuple[int, ...]) -> _Sized:
        return np.broadcast_to(np.zeros((), np.float32), shape).view(cls)


def feeding(model: onnx.ModelProto, node: onnx.NodeProto) -> list[str]:
    """Return the graph's inputs that a node's values are made from, nearest to it first."""
    inputs = [i.name for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
    direct = [i for i in node.input if i in inputs]
    further = {a for i in node.input if i for a in ancestors(model.graph, i)}
    return direct + [i for i in inputs if i in further and i not in direct]


def _index(node: onnx.NodeProto, values: dict[str, Any], feed: Feed, told: NodeFailure) -> IndexOutOfRange | None:
    if node.op_type not in LOOKUPS or len(node.input) < 2:
        return None
    table, indices = values.get(node.input[0]), values.get(node.input[1])
    axis = int(graph.attributes(node).get("axis", 0))
    if (
        not isinstance(table, np.ndarray)
        or not isinstance(indices, np.ndarray)
        or indices.dtype.kind not in "iu"
        or not table.ndim
    ):
        return None
    rows = table.shape[axis]
    wrong = (indices >= rows) | (indices < -rows)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    fed = next(
        (
            n
            for n, a in feed.items()
            if isinstance(a, np.ndarray) and a.size == indices.size and np.array_equal(a.reshape(-1), indices.reshape(-1))
        ),
        None,
    )
    longest = {n: a.shape for n, a in feed.items() if isinstance(a, np.ndarray)}
    return IndexOutOfRange(told, node.input[0], rows, int(indices[at]), at, fed, longest)


def _empty(node: onnx.NodeProto, values: dict[str, Any], feed: Feed, told: NodeFailure) -> EmptyAxis | None:
    empty = [n for n in told.shapes if 0 in told.shapes[n]]
    fed = {n: a.shape for n, a in feed.items() if isinstance(a, np.ndarray) and 0 in a.shape}
    if not empty or not fed:
        return None
    return EmptyAxis(told, empty[0], told.shapes[empty[0]].index(0), fed)


def _zero_divisor(node: onnx.NodeProto, values: dict[str, Any], feed: Feed, told: NodeFailure) -> DivisionByZero | None:
    if node.op_type not in ("Div", "Mod") or len(node.input) < 2:
        return None
    divisor = values.get(node.input[1])
    if not isinstance(divisor, np.ndarray) or divisor.dtype.kind not in "iu" or np.all(divisor != 0):
        return None
    zero = tuple(
        n
        for n in told.inputs
        if isinstance(feed.get(n), np.ndarray) and feed[n].size and np.any(feed[n] == 0) and feed[n].dtype.kind in "iu"
    )
    return DivisionByZero(told, node.input[1], zero)


def _allocation(node: onnx.NodeProto, values: dict[str, Any], feed: Feed, told: NodeFailure) -> AllocationTooLarge | None:
    refused = memory_refused(told.text)
    if refused is None:
        return None
    small = {
        n: np.asarray(values[n]).reshape(-1)[:6].tolist()
        for n in node.input
        if isinstance(values.get(n), np.ndarray) and values[n].dtype.kind in "iu" and values[n].size <= 16
    }
    large = [n for n in told.inputs if isinstance(feed.get(n), np.ndarray) and feed[n].dtype.kind in "iu" and feed[n].size]
    return AllocationTooLarge(told, refused[0], small, {n: int(np.max(feed[n])) for n in large})


def _condition(node: onnx.NodeProto, values: dict[str, Any], feed: Feed, told: NodeFailure) -> ConditionNotScalar | None:
    if node.op_type not in ("If", "Loop") or not node.input:
        return None
    index = 0 if node.op_type == "If" else 1
    condition = values.get(node.input[index]) if len(node.input) > index else None
    if not isinstance(condition, np.ndarray) or condition.size == 1:
        return None
    return ConditionNotScalar(told, node.input[index], condition.shape)


CAUSES: tuple[Callable[[onnx.NodeProto, dict[str, Any], Feed, NodeFailure], NodeFailed | None], ...] = (
    _index, _empty, _zero_divisor, _allocation, _condition
)  # fmt: skip


def died(fault: Fault) -> RuntimeDied:
    """Return a crash or a hang of the runtime."""
    return RuntimeDied(NodeFailure(fault.text), location=Location())


def explain_without_graph(fault: Fault) -> RunFailed:
    """Return a failed run in the runtime's own words, where the graph cannot be read."""
    return RunFailed(NodeFailure(ort.said(fault.text)), location=Location())
