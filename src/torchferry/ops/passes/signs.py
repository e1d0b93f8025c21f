"""Quantised weights as uint8, 128 higher with their zero point: the same numbers, which every processor multiplies right.

Of int8 weights between DequantizeLinear nodes onnxruntime makes products whose sums some processors cut off at 16 bits.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torchferry.ops.draft import constant_of

AWAY = 128


def unsigned_weights(model: ir.Model) -> None:
    """Keep every stored int8 tensor that is dequantised as uint8, in place."""
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if (node.domain, node.op_type) != ("", "DequantizeLinear"):
            continue
        stored, scale, *rest = node.inputs
        whole, steps = constant_of(stored), constant_of(scale)
        if stored is None or whole is None or whole.dtype != np.int8 or steps is None:
            continue
        zero = rest[0] if rest else None
        points = np.zeros(steps.shape, np.int8) if zero is None else constant_of(zero)
        if points is None:
            continue
        node.resize_inputs(3)
        node.replace_input_with(0, _moved(model.graph, stored.name, whole))
        node.replace_input_with(2, _moved(model.graph, f"{node.outputs[0].name}.zero_point", points))


def _moved(graph: ir.Graph, name: str | None, array: np.ndarray) -> ir.Value:
    """Return an initializer of the main graph with the integers 128 higher; the same one for all who read it."""
    name = f"{name}.uint8"
    if name not in graph.initializers:
        tensor = ir.tensor((array.astype(np.int16) + AWAY).astype(np.uint8), name=name)
        graph.register_initializer(
            ir.Value(name=name, const_value=tensor, shape=ir.Shape(tensor.shape), type=ir.TensorType(tensor.dtype))
        )
    return graph.initializers[name]
