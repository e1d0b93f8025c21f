"""Axes counted from the front where a tensor may be empty: onnxruntime reduces no axis of nothing that is counted from the end.

Of [0, 3] it makes [0, 3] in place of [0], and what comes after takes that for rows.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute, constant_of, made

I64 = ir.DataType.INT64


def count_from_the_front(model: ir.Model, some: Collection[str]) -> None:
    """Rewrite the axes of reductions of what may be empty, in place; `some` are the sizes that never are zero."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        rank = _rank_if_maybe_empty(node, some)
        if rank is None:
            continue
        if node.op_type in ("ArgMax", "ArgMin") and attribute(node, "axis", 0) < 0:
            node.attributes["axis"] = ir.AttrInt64("axis", attribute(node, "axis") + rank)
        elif node.op_type.startswith("Reduce") and (axes := constant_of(node.inputs[1])) is not None and (axes < 0).any():
            draft = Draft(node)
            front = draft.constant(axes % rank, I64)
            draft.swap(draft(node.op_type, node.inputs[0], front, dtype=node.outputs[0].dtype, **node.attributes))


def _rank_if_maybe_empty(node: ir.Node, some: Collection[str]) -> int | None:
    """Return the rank of what is reduced along named axes, if one of its sizes may be zero; else None."""
    reduces = node.op_type in ("ArgMax", "ArgMin") or (node.op_type.startswith("Reduce") and len(node.inputs) > 1)
    if node.domain != "" or not reduces:
        return None
    shape = _shape(node.inputs[0])
    if shape is None or all(size >= 1 if isinstance(size, int) else size.value in some for size in shape):
        return None
    return len(shape)


def _shape(value: ir.Value | None) -> ir.Shape | None:
    """Return the shape of a value, or of what was cast to it: casts are put in between without one."""
    while value is not None and value.shape is None:
        cast = made(value, "Cast")
        value = cast.inputs[0] if cast is not None else None
    return None if value is None else value.shape
