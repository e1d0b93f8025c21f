"""A matrix that is an embedding too, as the head of most language models is, kept once in its eight bits.

MatMulNBits holds a matrix row by row as an embedding does, (vocabulary, blocks, weights of a block), with a scale and a zero
point for each block; so a token's row is looked up in the very bytes that the product reads.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

TURNED = ".transposed"  # ends the name of a matrix that was made of an embedding by turning it


def share_with_embeddings(model: ir.Model) -> None:
    """Look embeddings up in the bytes of the matrix that was made of them, in place; they have to be in eight bits."""
    held = model.graph.initializers
    for name in [n.removesuffix(f"{TURNED}_Q8") for n in held if n.endswith(f"{TURNED}_Q8")]:
        table = held.get(name)
        for use in list(table.uses()) if table is not None else ():
            node = use.node
            if node.op_type == "Gather" and node.domain == "" and use.idx == 0 and node.attributes.get_int("axis", 0) == 0:
                _look_up(model.graph, node, *(held[f"{name}{TURNED}_{part}"] for part in ("Q8", "scales", "zero_points")))
    RemoveUnusedNodesPass()(model)  # the exact table goes where nobody reads it any more


def _look_up(graph: ir.Graph, node: ir.Node, weights: ir.Value, scales: ir.Value, zeros: ir.Value) -> None:
    """Replace a lookup of rows by one in whole numbers: less their zero points, times their scales, block by block."""
    ids, table, name = node.inputs[1], node.inputs[0], node.outputs[0].name
    if ids is None or ids.shape is None or table is None or table.const_value is None or table.dtype != ir.DataType.FLOAT:
        return
    width = int(table.const_value.shape[1])
    flat = _constant(graph, f"{name}.row", np.array([0] * len(ids.shape) + [-1]))
    last = _constant(graph, "int8.last_axis", np.array([-1]))
    whole, scale, zero = (ir.node("Gather", [held, ids]) for held in (weights, scales, zeros))
    made = [whole, scale, zero]
    real, away = (_then(made, "Cast", n.outputs[0], to=ir.DataType.FLOAT) for n in (whole, zero))
    away, step = (_then(made, "Unsqueeze", v, last) for v in (away, scale.outputs[0]))
    row = _then(made, "Reshape", _then(made, "Mul", _then(made, "Sub", real, away), step), flat)
    bounds = (_constant(graph, f"int8.{n}", np.array([n])) for n in (0, width))
    row = _then(made, "Slice", row, *bounds, last)  # the last block may be longer than what is left of the row
    for index, part in enumerate(made):
        part.name = part.outputs[0].name = f"{name}_part{index}"
    ir.convenience.replace_nodes_and_values(graph, node, [node], made, [node.outputs[0]], [row])


def _then(made: list[ir.Node], kind: str, *inputs: ir.Value, **attributes: int) -> ir.Value:
    made.append(ir.node(kind, inputs, attributes))
    return made[-1].outputs[0]


def _constant(graph: ir.Graph, name: str, array: np.ndarray) -> ir.Value:
    if name in graph.initializers:
        return graph.initializers[name]
    tensor = ir.tensor(array, name=name)
    made = ir.Value(name=name, const_value=tensor, shape=tensor.shape, type=ir.TensorType(tensor.dtype))
    graph.register_initializer(made)
    return made
