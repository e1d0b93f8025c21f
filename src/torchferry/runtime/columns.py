"""Weights in 8 bits with a scale for each column, activations rounded as they come: standard ONNX, and the fastest int8 here.

    x @ W   ->   DynamicQuantizeLinear(x), MatMulInteger with W in int8, times both scales

onnxruntime makes one kernel of these nodes, whose speed is that of reading the weights. A matrix that is also an embedding (the
head of most language models) is kept once: its rows are looked up in the same int8 matrix.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass


def quantise_columns(model: ir.Model) -> None:
    """Put every constant float32 matrix of a MatMul into int8, in place."""
    held: dict[str, tuple[ir.Value, ir.Value]] = {}
    for node in list(model.graph):
        matrix = node.inputs[1] if node.domain == "" and node.op_type == "MatMul" else None
        if matrix is None or matrix.const_value is None or len(matrix.const_value.shape) != 2:
            continue
        if matrix.const_value.dtype != ir.DataType.FLOAT:
            continue
        assert matrix.name is not None
        if matrix.name not in held:
            held[matrix.name] = _rounded(model.graph, matrix)
        _replace(model.graph, node, *held[matrix.name])
    for name, (weights, scales) in held.items():
        _share_with_embedding(model.graph, name, weights, scales)
    RemoveUnusedNodesPass()(model)  # the exact matrices go with them


def _rounded(graph: ir.Graph, matrix: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return initializers with the matrix in int8, and the scale of each column."""
    assert matrix.const_value is not None
    exact = matrix.const_value.numpy().astype(np.float32)
    largest = np.abs(exact).max(axis=0)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    whole = np.clip(np.rint(exact / scales), -127, 127).astype(np.int8)
    return _constant(graph, f"{matrix.name}.int8", whole), _constant(graph, f"{matrix.name}.scale", scales)


def _replace(graph: ir.Graph, node: ir.Node, weights: ir.Value, scales: ir.Value) -> None:
    name = node.outputs[0].name
    zero = _constant(graph, "int8.zero", np.zeros((), np.int8))
    read = ir.node("DynamicQuantizeLinear", [node.inputs[0]], num_outputs=3, name=f"{node.outputs[0].name}_read")
    product = ir.node("MatMulInteger", [read.outputs[0], weights, read.outputs[2], zero], name=f"{node.outputs[0].name}_int8")
    real = ir.node("Cast", product.outputs, {"to": ir.DataType.FLOAT}, name=f"{node.outputs[0].name}_real")
    both = ir.node("Mul", [read.outputs[1], scales], name=f"{node.outputs[0].name}_scales")
    scaled = ir.node("Mul", [real.outputs[0], both.outputs[0]], name=f"{node.outputs[0].name}_scaled")
    made = [read, product, real, both, scaled]
    for index, value in enumerate(v for n in made[:-1] for v in n.outputs):
        value.name = f"{name}_part{index}"
    ir.convenience.replace_nodes_and_values(graph, node, [node], made, [node.outputs[0]], [scaled.outputs[0]])


def _share_with_embedding(graph: ir.Graph, name: str, weights: ir.Value, scales: ir.Value) -> None:
    """Look rows up in the int8 matrix where it is the transpose of an embedding, so that there is no second copy."""
    table = graph.initializers.get(name.removesuffix(".transposed"))
    if table is None or table.name == name:
        return
    for use in list(table.uses()):
        node = use.node
        if node.op_type == "Gather" and node.domain == "" and use.idx == 0 and node.attributes.get_int("axis", 0) == 0:
            _look_up(graph, node, weights, scales)


def _look_up(graph: ir.Graph, node: ir.Node, weights: ir.Value, scales: ir.Value) -> None:
    """Replace a lookup of rows by one of columns of the transposed matrix, each times its scale."""
    ids = node.inputs[1]
    rank = len(ids.shape) if ids is not None and ids.shape is not None else None
    if rank is None:
        return
    columns = ir.node("Gather", [weights, ids], {"axis": 1}, name=f"{node.outputs[0].name}_int8")
    last = ir.node("Transpose", columns.outputs, {"perm": [*range(1, rank + 1), 0]}, name=f"{node.outputs[0].name}_rows")
    real = ir.node("Cast", last.outputs, {"to": ir.DataType.FLOAT}, name=f"{node.outputs[0].name}_real")
    scale = ir.node("Gather", [scales, ids], {"axis": 0}, name=f"{node.outputs[0].name}_scale")
    wide = ir.node(
        "Unsqueeze", [scale.outputs[0], _constant(graph, "int8.last_axis", np.array([-1]))], name=f"{node.outputs[0].name}_wide"
    )
    scaled = ir.node("Mul", [real.outputs[0], wide.outputs[0]], name=f"{node.outputs[0].name}_scaled")
    made = [columns, last, real, scale, wide, scaled]
    for index, value in enumerate(v for n in made[:-1] for v in n.outputs):
        value.name = f"{node.outputs[0].name}_part{index}"
    ir.convenience.replace_nodes_and_values(graph, node, [node], made, [node.outputs[0]], [scaled.outputs[0]])


def _constant(graph: ir.Graph, name: str, array: np.ndarray) -> ir.Value:
    if name in graph.initializers:
        return graph.initializers[name]
    tensor = ir.tensor(np.ascontiguousarray(array), name=name)
    made = ir.Value(name=name, const_value=tensor, shape=tensor.shape, type=ir.TensorType(tensor.dtype))
    graph.register_initializer(made)
    return made
