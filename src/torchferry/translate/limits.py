"""A range that the graph itself keeps: ONNX cannot declare that a size ends, so the file refuses to run beyond it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from torchferry.edits.inputs import Narrow
from torchferry.records import Dim, Signature


def keep_ranges(model: ir.Model, signature: Signature, edits: Sequence[Narrow]) -> None:
    """Make the file refuse the sizes that were given up: the model took them, so nothing else in the graph would."""
    names = {name for edit in edits for name, cut in edit.sizes.items() if cut is not None}
    for dim in signature.dims:
        if dim.name in names:
            places = [(i, a) for i, spec in enumerate(signature.inputs) for a, size in enumerate(spec.shape) if size == dim.name]
            _guarded(model.graph, model.graph.inputs[places[0][0]], places[0][1], dim)


def _guarded(graph: ir.Graph, value: ir.Value, axis: int, dim: Dim) -> None:
    """Let everything use `value` through a Reshape to its own shape, which cannot be had where the size is out of range.

    The Reshape copies nothing. A table of one row is looked up at 0, or at 1 where the size is out of range: the runtime
    then names the node, and the node's name is what the user must know.
    """
    uses = list(value.uses())
    nodes: list[ir.Node] = []

    def add(
        op_type: str, *inputs: ir.Value, name: str = "", dtype: ir.DataType = ir.DataType.INT64, **attributes: int
    ) -> ir.Value:
        node = ir.Node("", op_type, list(inputs), ir.convenience.convert_attributes(attributes))
        node.name = name or f"{dim.name}_range_{op_type}_{len(nodes)}"
        output = node.outputs[0]
        output.name, output.dtype = f"{node.name}_out", dtype
        nodes.append(node)
        return output

    def constant(number: int | list[int]) -> ir.Value:
        node = ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.tensor(np.asarray(number, np.int64)))])
        node.name = f"{dim.name}_range_Constant_{len(nodes)}"
        node.outputs[0].name, node.outputs[0].dtype = f"{node.name}_out", ir.DataType.INT64
        nodes.append(node)
        return node.outputs[0]

    shape = add("Shape", value)
    size = add("Gather", shape, constant(axis))
    outside = [add("Less", size, constant(dim.low), dtype=ir.DataType.BOOL)]
    if dim.high is not None:
        outside.append(add("Less", constant(dim.high), size, dtype=ir.DataType.BOOL))
    if dim.multiple_of > 1:
        rest = add("Mod", size, constant(dim.multiple_of))
        outside.append(add("Cast", rest, dtype=ir.DataType.BOOL, to=int(ir.DataType.BOOL)))
    beyond = outside[0]
    for more in outside[1:]:
        beyond = add("Or", beyond, more, dtype=ir.DataType.BOOL)
    row = add("Cast", beyond, to=int(ir.DataType.INT64))
    nothing = add("Gather", constant([0]), row, name=_demand(dim))
    same = add("Reshape", value, add("Add", shape, nothing), dtype=value.dtype or ir.DataType.UNDEFINED)
    same.shape = value.shape
    for node, index in uses:
        node.replace_input_with(index, same)
    graph.insert_before(graph[0], nodes) if len(graph) else graph.extend(nodes)


def _demand(dim: Dim) -> str:
    """Return the range as a node's name: `length_must_be_1_to_10`."""
    end = "" if dim.high is None else f"_to_{dim.high}"
    step = f"_in_steps_of_{dim.multiple_of}" if dim.multiple_of > 1 else ""
    return f"{dim.name}_must_be_{dim.low}{end or '_or_more'}{step}"
