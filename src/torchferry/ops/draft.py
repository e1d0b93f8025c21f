"""Nodes drawn up in place of another: built one by one, then swapped in with the old one's names and origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir


class Draft:
    """The replacement of a node. Calling it adds a node and returns its output; `swap` puts all of them in place."""

    def __init__(self, node: ir.Node) -> None:
        self.old = node
        self.nodes: list[ir.Node] = []

    def __call__(self, op_type: str, *inputs: ir.Value | None, dtype: ir.DataType | None = None, **attributes: Any) -> ir.Value:
        """Add a node with one output and return that."""
        return self.many(op_type, *inputs, outputs=1, dtype=dtype, **attributes)[0]

    def many(
        self, op_type: str, *inputs: ir.Value | None, outputs: int, dtype: ir.DataType | None = None, **attributes: Any
    ) -> Sequence[ir.Value]:
        """Add a node and return its outputs."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        kept = ir.convenience.convert_attributes({k: v for k, v in attributes.items() if v is not None})
        node = ir.Node("", op_type, given, kept, num_outputs=outputs, metadata_props=dict(self.old.metadata_props))
        node.meta.update(self.old.meta)
        node.name = f"{self.old.name or self.old.outputs[0].name}_{op_type}_{len(self.nodes)}"
        for index, value in enumerate(node.outputs):
            value.name = f"{self.old.outputs[0].name}_{op_type}_{len(self.nodes)}" + (f"_{index}" if index else "")
            if dtype is not None:
                value.dtype = dtype
        self.nodes.append(node)
        return node.outputs

    def constant(self, value: Any, dtype: Any) -> ir.Value:
        """Return a constant of a numpy or ONNX dtype."""
        kind = dtype.numpy() if isinstance(dtype, ir.DataType) else dtype
        tensor = ir.tensor(np.asarray(value, dtype=kind))
        output = self("Constant", value=tensor, dtype=tensor.dtype)
        output.shape, output.const_value = ir.Shape(tensor.shape), tensor
        return output

    def swap(self, *values: ir.Value) -> None:
        """Put the new nodes where the old one was; `values` take over its outputs, one by one."""
        graph = self.old.graph
        assert graph is not None
        last = self.nodes[-1]
        ir.convenience.replace_nodes_and_values(graph, self.old, [self.old], self.nodes, self.old.outputs, values)
        last.name = self.old.name


def constant_of(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    """Return a value's numbers when the graph itself fixes them, or None."""
    if value is None or value.is_graph_input():
        return None
    tensor = value.const_value
    if tensor is None:
        producer = value.producer()
        if producer is None or producer.op_type != "Constant" or "value" not in producer.attributes:
            return None
        tensor = producer.attributes["value"].as_tensor()
    return tensor.numpy()


def is_number(value: ir.Value | None, number: float) -> bool:
    """Whether a value is this one number, and the graph itself fixes it."""
    constant = constant_of(value)
    return constant is not None and constant.size == 1 and float(constant.item()) == number


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Return a node's attribute, or the default."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def made(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node that gives a value, if it is a standard one of this type."""
    node = value.producer() if value is not None else None
    return node if node is not None and (node.domain, node.op_type) == ("", op_type) else None


def transposed(value: ir.Value | None) -> ir.Value | None:
    """Return the matrix that the file holds and of which a value is the transpose, or None."""
    node = made(value, "Transpose")
    matrix = node.inputs[0] if node is not None else None
    if node is None or matrix is None or matrix.is_graph_input() or matrix.const_value is None:
        return None
    return matrix if len(matrix.const_value.shape) == 2 and list(attribute(node, "perm", [1, 0])) == [1, 0] else None


def sizes(value: ir.Value | None) -> tuple[int | str, ...] | None:
    """Return a value's sizes, each a number or the name that stands for one; None where one is not known."""
    if value is None or value.shape is None:
        return None
    found = [d if isinstance(d, int) else d.value for d in value.shape]
    return None if None in found else tuple(d for d in found if d is not None)
