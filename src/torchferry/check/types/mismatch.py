"""Shapes that cannot go together, and branches that are never taken: what a runtime's shape inference stumbles over."""

from __future__ import annotations

import onnx

from torchferry.check.reading import graph
from torchferry.check.types import fold
from torchferry.foreign import onnxruntime_messages
from torchferry.records import Fault, Location
from torchferry.records.findings import DeadBranch, ShapeConflict

Shapes = dict[str, tuple[int | str | None, ...]]


def findings(model: onnx.ModelProto, fault: Fault) -> list[DeadBranch] | list[ShapeConflict]:
    """Return the shape conflict that the runtime's words are about, or the dead branch that it lies in."""
    if not onnxruntime_messages.about_shapes(fault.text):
        return []
    named = onnxruntime_messages.node(fault.text)
    shapes = known_shapes(model)
    if dead := _dead_branches(model, shapes):
        return dead
    place = next((p for p in graph.places(model) if named and p.label == named[0]), None)
    if place is None:
        return []
    node = place.node
    conflict = ShapeConflict(
        {i: _plain(shapes[i]) for i in node.input if i in shapes},
        tuple(t.name for t in getattr(place.graph, "initializer", ()) if t.name in node.input),
        fault.text.rsplit("] ", 1)[-1][:200],
        _flip(node, shapes, {o.name: s for o in model.graph.output if (s := _declared(o)) is not None}),
        location=Location(onnx_node=place.label, op=node.op_type),
    )
    return [conflict]


def known_shapes(model: onnx.ModelProto) -> Shapes:
    """Return the shapes that follow from the declarations; past a contradiction there are none."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:  # the inference gives up on some graphs that it cannot make sense of
        inferred = model
    known: Shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        if (shape := _declared(value)) is not None:
            known.setdefault(value.name, shape)
    for node in model.graph.node:
        if node.op_type == "Constant" and (constant := graph.constant(node)) is not None:
            known[node.output[0]] = constant.shape
    return known


def _declared(value: onnx.ValueInfoProto) -> tuple[int | str | None, ...] | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim)


def _plain(shape: tuple[int | str | None, ...]) -> tuple[int | str, ...]:
    return tuple("?" if s is None else s for s in shape)


def _flip(node: onnx.NodeProto, shapes: Shapes, outputs: Shapes) -> str | None:
    """Return the transpose flag of a Gemm that, flipped, makes operands, bias and declared output agree, if just one does."""
    if node.op_type != "Gemm" or any(i not in shapes or len(shapes[i]) != 2 for i in node.input[:2]):
        return None
    values = graph.attributes(node)
    flags = {"transA": int(values.get("transA", 0)), "transB": int(values.get("transB", 0))}
    good = [f for f in flags if _gemm_fits(node, shapes, outputs, {**flags, f: 1 - flags[f]})]
    return good[0] if len(good) == 1 else None


def _gemm_fits(node: onnx.NodeProto, shapes: Shapes, outputs: Shapes, flags: dict[str, int]) -> bool:
    a, b = shapes[node.input[0]], shapes[node.input[1]]
    rows, inner = (a[1], a[0]) if flags["transA"] else (a[0], a[1])
    inner_b, columns = (b[1], b[0]) if flags["transB"] else (b[0], b[1])
    bias = shapes.get(node.input[2], ()) if len(node.input) > 2 else ()
    declared = outputs.get(node.output[0], (rows, columns))
    pairs = [(inner, inner_b), (declared[0], rows), (declared[-1], columns)] + (
        [(bias[-1], columns)] if bias and bias[-1] != 1 else []
    )
    return all(not isinstance(x, int) or not isinstance(y, int) or x == y for x, y in pairs)


def _dead_branches(model: onnx.ModelProto, shapes: Shapes) -> list[DeadBranch]:
    """Return the Ifs whose condition is settled by constants and fixed sizes: only one branch ever runs."""
    found = []
    for place in graph.nodes_of(model.graph):
        if place.node.op_type != "If":
            continue
        condition = fold.value(place.node.input[0], place.graph, shapes)
        if condition is not None:
            settled = bool(condition.reshape(-1)[0])
            found.append(DeadBranch(settled, place.node.input[0], location=Location(onnx_node=place.label, op="If")))
    return found
