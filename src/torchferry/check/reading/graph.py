"""Ways to walk an onnx.ModelProto: nodes with the scope they stand in, constants, who makes and who reads a value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import onnx
import onnx.inliner

MOST_NODES = 250_000  # of a model whose functions are written out; the largest that exporters write have a tenth of it
MOST_DEEP = 300  # functions that call each other; exporters nest some ten, and native code dies of thousands, for want of stack
SMALL = 1 << 16  # constants of more elements are weights, not shapes, masks or indices


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node, the graph (or function) whose list it stands in, and the node whose attribute that graph is."""

    node: onnx.NodeProto
    graph: Any  # GraphProto or FunctionProto
    owner: onnx.NodeProto | None = None

    @property
    def label(self) -> str:
        """The node's name; for a nameless one what it makes, or its operator."""
        return label(self.node)


def label(node: onnx.NodeProto) -> str:
    """Return the node's name; for a nameless one what it makes, or its operator."""
    return node.name or next((o for o in node.output if o), "") or node.op_type


def places(model: onnx.ModelProto) -> Iterator[NodePlace]:
    """Yield every node of the model: the main graph's, its subgraphs', and those of the model's own functions."""
    yield from nodes_of(model.graph)
    for function in model.functions:
        yield from nodes_of(function)


def nodes_of(graph: Any, owner: onnx.NodeProto | None = None) -> Iterator[NodePlace]:
    """Yield the nodes of a graph, each followed by those of its subgraphs."""
    for node in graph.node:
        yield NodePlace(node, graph, owner)
        for subgraph in subgraphs(node):
            yield from nodes_of(subgraph, node)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the main graph and all subgraphs."""
    yield model.graph
    for place in places(model):
        yield from subgraphs(place.node)


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor stored in the model: initializers and attributes."""
    return (tensor for tensor, _ in stored(model))


def stored(model: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, NodePlace | None]]:
    """Yield every tensor stored in the model, with the node that has it as an attribute; None for initializers."""
    for graph in graphs(model):
        yield from ((tensor, None) for tensor in graph.initializer)
        for sparse in graph.sparse_initializer:
            yield sparse.values, None
            yield sparse.indices, None
    for place in places(model):
        for attribute in place.node.attribute:
            if attribute.HasField("t"):
                yield attribute.t, place
            yield from ((tensor, place) for tensor in attribute.tensors)


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the node's attributes as Python values."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}


def set_attribute(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Give the node an attribute, in place of the one it had; None takes it away."""
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(onnx.helper.make_attribute(name, value))


def opset(model: onnx.ModelProto | onnx.FunctionProto, domain: str = "") -> int | None:
    """Return the version that a model, or one of its functions, is stamped with for a domain; None if it is not."""
    same = ("", "ai.onnx") if domain in ("", "ai.onnx") else (domain,)
    return next((o.version for o in model.opset_import if o.domain in same), None)


def external(tensor: onnx.TensorProto) -> bool:
    """Say whether the tensor's numbers are in another file."""
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def array(tensor: onnx.TensorProto) -> np.ndarray | None:
    """Return a small tensor's numbers; None for a large or unreadable one, or one in another file."""
    size = int(np.prod(list(tensor.dims), dtype=np.float64)) if tensor.dims else 1
    if external(tensor) or not 0 <= size <= SMALL:
        return None
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception:  # a broken tensor: the bytes do not fit the dims, the type is unknown
        return None


def constants(graph: Any) -> dict[str, np.ndarray]:
    """Return the small constants of a graph by the name of their value: initializers and Constant nodes."""
    found = {}
    for tensor in getattr(graph, "initializer", ()):
        if (value := array(tensor)) is not None:
            found[tensor.name] = value
    for node in graph.node:
        if node.op_type == "Constant" and node.output and (value := constant(node)) is not None:
            found[node.output[0]] = value
    return found


def constant(node: onnx.NodeProto) -> np.ndarray | None:
    """Return what a Constant node holds, where it is a small tensor or number."""
    for name, value in attributes(node).items():
        if name == "value":
            return array(value)
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
    return None


def makers(graph: Any) -> dict[str, onnx.NodeProto]:
    """Return which node makes each value of a graph."""
    return {output: node for node in graph.node for output in node.output if output}


def readers(graph: Any) -> dict[str, list[onnx.NodeProto]]:
    """Return which nodes read each value, those of subgraphs included."""
    found: dict[str, list[onnx.NodeProto]] = {}
    for place in nodes_of(graph):
        for name in place.node.input:
            found.setdefault(name, []).append(place.node)
    return found


def fresh_name(taken: set[str], wish: str) -> str:
    """Return a name like `wish` that is not taken yet, and take it."""
    name, number = wish, 1
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    taken.add(name)
    return name


def value_names(model: onnx.ModelProto) -> set[str]:
    """Return every name of a value in the model."""
    names: set[str] = set()
    for graph in graphs(model):
        names.update(v.name for v in (*graph.input, *graph.output, *graph.initializer))
    for place in places(model):
        names.update(place.node.input)
        names.update(place.node.output)
    return names


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which each node has a name: a nameless one is named after what it makes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for place in places(copy):
        place.node.name = place.label
    return copy


def ordered(part: Any) -> list[onnx.NodeProto]:
    """Return the nodes of a graph so that each comes after those whose values it reads."""
    makers = {o: i for i, n in enumerate(part.node) for o in n.output if o}
    needs = {i: {makers[name] for name in reads(n) if name in makers} - {i} for i, n in enumerate(part.node)}
    if all(need < i for i, wants in needs.items() for need in wants):
        return list(part.node)
    try:
        return [part.node[i] for i in TopologicalSorter(needs).static_order()]
    except CycleError:
        return list(part.node)


def reads(node: onnx.NodeProto) -> set[str]:
    """Return every value that a node, or a graph inside it, reads."""
    return set(node.input) | {i for s in subgraphs(node) for p in nodes_of(s) for i in p.node.input}


def legible(model: onnx.ModelProto) -> bool:
    """Say whether every name in a model is text; in a damaged one it may be any bytes."""
    names: list[object] = [o.domain for o in model.opset_import] + [
        x for f in model.functions for x in (f.name, f.domain, *f.input, *f.output)
    ]
    for part in graphs(model):
        names += [v.name for v in (*part.input, *part.output, *part.value_info, *part.initializer)]
        names += [d.dim_param for v in (*part.input, *part.output) for d in v.type.tensor_type.shape.dim]
    names += [text for t in tensors(model) for e in t.external_data for text in (e.key, e.value)]
    for place in places(model):
        node = place.node
        names += [node.name, node.op_type, node.domain, *node.input, *node.output, *(a.name for a in node.attribute)]
    return all(isinstance(n, str) for n in names)


def flat(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its own functions written out where they are called; as it is where that cannot be done.

    Nor is it done where it would come to more nodes than anybody writes, or lead deeper: functions that call each other twice,
    thirty deep, are two kilobytes, and a billion nodes.
    """
    if not model.functions or written_out(model) > MOST_NODES or nested(model) > MOST_DEEP:
        return model
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception:  # a function that calls itself or does not exist: the runtime's own words say more
        return model


def written_out(model: onnx.ModelProto) -> float:
    """Return how many nodes a model comes to with its functions written out; infinite where one calls itself."""
    bodies, calls = _calls(model)
    counts: dict[Any, float] = {}
    try:
        for key in TopologicalSorter(calls).static_order():
            own = sum(1 for _ in nodes_of(bodies[key]))
            counts[key] = own + sum(times * counts[other] for other, times in calls[key].items())
    except CycleError:
        return math.inf
    return sum(1 + counts.get(key, 0) for key in (_key(p.node) for p in nodes_of(model.graph)))


def nested(model: onnx.ModelProto) -> float:
    """Return how deep a model's functions call each other; infinite where one calls itself."""
    _, calls = _calls(model)
    depths: dict[Any, int] = {}
    try:
        for key in TopologicalSorter(calls).static_order():
            depths[key] = 1 + max((depths[other] for other in calls[key]), default=0)
    except CycleError:
        return math.inf
    return max(depths.values(), default=0)


def _calls(model: onnx.ModelProto) -> tuple[dict[Any, onnx.FunctionProto], dict[Any, Counter[Any]]]:
    """Return a model's functions, and how often each calls which others."""
    bodies = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    return bodies, {key: Counter(_called(f, bodies)) for key, f in bodies.items()}


def _called(function: onnx.FunctionProto, bodies: Container[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    return (key for p in nodes_of(function) if (key := _key(p.node)) in bodies)


def _key(node: onnx.NodeProto) -> tuple[str, str, str]:
    return node.domain, node.op_type, getattr(node, "overload", "")
