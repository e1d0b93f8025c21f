"""Part of a graph as a model of its own: from some values to others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import onnx
from onnx import helper

from torchferry.verify.arrays import Array


def between(model: onnx.ModelProto, given: Mapping[str, Array], wanted: Sequence[str]) -> onnx.ModelProto:
    """Return the model that makes `wanted` from the values of `given`, with the weights it needs and nothing else."""
    nodes = needed(model.graph, given, wanted)
    taken = {name for node in nodes for name in inputs_of(node)} | set(wanted)
    inputs = [_declared(name, array) for name, array in given.items() if name in taken]
    outputs = [onnx.ValueInfoProto(name=name) for name in wanted]
    weights = [t for t in model.graph.initializer if t.name in taken and t.name not in given]
    graph = helper.make_graph(nodes, "part", inputs, outputs, weights)
    part = onnx.ModelProto()
    part.CopyFrom(helper.make_model(graph, opset_imports=model.opset_import, functions=model.functions))
    part.ir_version = model.ir_version
    return part


def needed(graph: onnx.GraphProto, given: Collection[str], wanted: Sequence[str]) -> list[onnx.NodeProto]:
    """Return the nodes that make `wanted` from `given`, in the graph's order."""
    missing, chosen = set(wanted) - set(given), []
    for node in reversed(graph.node):
        if missing & set(node.output):
            chosen.append(node)
            missing |= {name for name in inputs_of(node) if name not in given}
    return chosen[::-1]


def inputs_of(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the names that a node reads, those that its branches and bodies take from outside included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = {o for n in attribute.g.node for o in n.output} | {i.name for i in attribute.g.input}
            for body in attribute.g.node:
                yield from (name for name in inputs_of(body) if name not in inner)
            yield from (o.name for o in attribute.g.output if o.name not in inner)


def _declared(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
