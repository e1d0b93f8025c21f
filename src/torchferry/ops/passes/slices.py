"""Slices that take everything, as `x[:, :, None]` leaves them behind: the value itself."""

from __future__ import annotations

import onnx_ir as ir

from torchferry.ops.draft import constant_of, made, sizes


def no_whole_slices(model: ir.Model) -> None:
    """Take out every Slice in steps of 1 that gives as much as it is given, in place."""
    for node in list(model.graph):
        value = node.inputs[0] if made(node.outputs[0], "Slice") is not None else None
        if value is None or node.outputs[0].is_graph_output() or not _by_ones(node):
            continue
        if (given := sizes(value)) is not None and given == sizes(node.outputs[0]):
            node.outputs[0].replace_all_uses_with(value)
            model.graph.remove(node, safe=True)


def _by_ones(node: ir.Node) -> bool:
    if len(node.inputs) < 5 or node.inputs[4] is None:
        return True
    steps = constant_of(node.inputs[4])
    return steps is not None and bool((steps == 1).all())
