"""Putting new nodes into a graph: named after the node they serve, in the place where they are needed."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence, Sequence
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph
from torchferry.check.types import dtypes


class Weaver:
    """Makes nodes for one graph. `op` and `const` return the name of the value made; `before` puts them in front of a node."""

    def __init__(self, model: onnx.ModelProto, prefix: str) -> None:
        self._taken = graph.value_names(model)
        self._prefix = prefix
        self.nodes: list[onnx.NodeProto] = []

    def op(self, op_type: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node of the standard's domain and return its output's name."""
        name = output or graph.fresh_name(self._taken, f"{self._prefix}/{op_type}")
        self.nodes.append(
            onnx.helper.make_node(op_type, list(inputs), [name], name=graph.fresh_name(self._taken, f"{name}/node"), **attributes)
        )
        return name

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant and return its name."""
        tensor = onnx.numpy_helper.from_array(np.asarray(value, dtype))
        return self.op("Constant", [], value=tensor)

    def replace(self, part: Any, old: onnx.NodeProto) -> None:
        """Put the nodes made so far in the place of `old`."""
        index = position(part, old)
        del part.node[index]
        self._insert(part, index)

    def before(self, part: Any, node: onnx.NodeProto) -> None:
        """Put the nodes made so far in front of `node`."""
        self._insert(part, position(part, node))

    def after(self, part: Any, node: onnx.NodeProto) -> None:
        """Put the nodes made so far behind `node`."""
        self._insert(part, position(part, node) + 1)

    def _insert(self, part: Any, index: int) -> None:
        for offset, node in enumerate(self.nodes):
            part.node.insert(index + offset, node)
        self.nodes = []


def rename(names: MutableSequence[str], old: str, new: str) -> None:
    """Put one name in the place of another among the inputs, or the outputs, of a node."""
    for index, name in enumerate(names):
        if name == old:
            names[index] = new


class OfOneType:
    """A weaver whose constants all have one element type: the graph that `ops.activations` writes into."""

    def __init__(self, weaver: Weaver, word: str) -> None:
        self._weaver, self._dtype = weaver, dtypes.of_text(f"tensor({word})")

    def op(self, op_type: str, *inputs: str, **attributes: float) -> str:
        """Add a node and return its output's name."""
        return self._weaver.op(op_type, inputs, None, **attributes)

    def number(self, value: float) -> str:
        """Add a constant and return its name."""
        return self._weaver.const(value, self._dtype)


def position(part: Any, node: onnx.NodeProto) -> int:
    """Return where in the graph's list a node stands."""
    return next(i for i, n in enumerate(part.node) if n is node or n == node)


def find(model: onnx.ModelProto, name: str) -> graph.NodePlace | None:
    """Return the node of that label."""
    return next((p for p in graph.places(model) if p.label == name), None)


def lay_open(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """Write the model's own functions out where they are called, if one of these nodes stands in one."""
    if any(find(model, name) is None for name in names):
        model.CopyFrom(graph.flat(model))


def forget_shapes(model: onnx.ModelProto) -> None:
    """Take away what the file says of its inner values: after a change it may be wrong, and runtimes work it out anew."""
    for part in graph.graphs(model):
        del part.value_info[:]


def tidy(model: onnx.ModelProto) -> None:
    """Put nodes behind those whose values they read, and take away constants that nobody reads any more."""
    for part in graph.graphs(model):
        nodes = graph.ordered(part)
        if any(a is not b for a, b in zip(nodes, part.node, strict=True)):
            copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
            del part.node[:]
            part.node.extend(copies)
    read = {i for p in graph.places(model) for i in p.node.input} | {o.name for g in graph.graphs(model) for o in g.output}
    for part in graph.graphs(model):
        inputs = {i.name for i in part.input}
        for index in reversed(range(len(part.initializer))):
            if part.initializer[index].name not in read | inputs:
                del part.initializer[index]
        for index in reversed(range(len(part.node))):
            node = part.node[index]
            if node.op_type == "Constant" and not set(node.output) & read:
                del part.node[index]
