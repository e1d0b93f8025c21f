"""Is the graph a graph? Names given twice, values that nobody makes, cycles, and initializers that do not hold what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import onnx

from torchferry.check.reading import external, graph
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import declared, infer
from torchferry.errors import did_you_mean
from torchferry.records import Finding, Location
from torchferry.records.findings import (
    DanglingInput,
    DanglingOutput,
    DuplicateInitializer,
    DuplicateNodeName,
    GraphCycle,
    InitializerSize,
    InitializerType,
    RecursiveFunctions,
    ShadowedName,
    ValueDefinedTwice,
)


def findings(model: onnx.ModelProto) -> list[Finding]:
    """Return what is wrong with the names and edges of a model."""
    return [
        *_node_names(model),
        *_redefined(model),
        *_shadowed(model.graph, set()),
        *_dangling_inputs(model.graph, set()),
        *_dangling_outputs(model),
        *_cycles(model),
        *_recursion(model),
        *_initializers(model),
    ]


def _node_names(model: onnx.ModelProto) -> Iterator[Finding]:
    for part in graph.graphs(model):
        for name, count in Counter(n.name for n in part.node if n.name).items():
            if count > 1:
                ops = tuple(n.op_type for n in part.node if n.name == name)
                yield DuplicateNodeName(ops, location=Location(onnx_node=name))


def _redefined(model: onnx.ModelProto) -> Iterator[Finding]:
    """Values made twice in one graph: by two nodes, or by a node under the name of an input or initializer."""
    for part in graph.graphs(model):
        given = {v.name for v in (*part.input, *part.initializer)}
        for name, count in Counter(v.name for v in part.input).items():
            if count > 1:
                where = Location(input_name=name)
                yield ValueDefinedTwice(name, ("the inputs of the graph",) * count, same=False, location=where)
        makers: dict[str, onnx.NodeProto] = {}
        for node in part.node:
            for output in node.output:
                if output and (output in makers or output in given):
                    first = makers.get(output)
                    nodes = tuple(graph.label(n) for n in (first, node) if n is not None)
                    same = first is not None and same_work(first, node)
                    yield ValueDefinedTwice(output, nodes, same, location=_at(node))
                elif output:
                    makers[output] = node


def same_work(a: onnx.NodeProto, b: onnx.NodeProto) -> bool:
    """Whether two nodes compute the same thing, so that one of them can go."""
    plain_a, plain_b = onnx.NodeProto(), onnx.NodeProto()
    plain_a.CopyFrom(a)
    plain_b.CopyFrom(b)
    for node in (plain_a, plain_b):
        node.name = node.doc_string = ""
        del node.metadata_props[:]
    return bool(plain_a == plain_b)


def _shadowed(part: onnx.GraphProto, outer: set[str]) -> Iterator[Finding]:
    """Names that a subgraph defines although the graph around it has them already."""
    here = {v.name for v in (*part.input, *part.initializer)} | {o for n in part.node for o in n.output if o}
    for node in part.node:
        for subgraph in graph.subgraphs(node):
            inner = {v.name for v in (*subgraph.input, *subgraph.initializer)} | {o for n in subgraph.node for o in n.output if o}
            for name in sorted(inner & (outer | here)):
                yield ShadowedName(name, subgraph.name, location=_at(node))
            yield from _shadowed(subgraph, outer | here)


def _dangling_inputs(part: onnx.GraphProto, outer: set[str]) -> Iterator[Finding]:
    here = outer | {v.name for v in (*part.input, *part.initializer)} | {o for n in part.node for o in n.output}
    here |= {s.values.name for s in part.sparse_initializer}
    for node in part.node:
        for name in node.input:
            if name and name not in here:
                yield DanglingInput(name, did_you_mean(name, here), location=_at(node))
        for subgraph in graph.subgraphs(node):
            yield from _dangling_inputs(subgraph, here)


def _dangling_outputs(model: onnx.ModelProto) -> Iterator[Finding]:
    part = model.graph
    made = {v.name for v in (*part.input, *part.initializer)} | {o for n in part.node for o in n.output if o}
    lost = [o for o in part.output if o.name not in made]
    if not lost:
        return
    spare = _unread(model)
    for output in lost:
        fits = tuple(v for v, word in spare.items() if declared(output) in (None, word) or word is None)
        take = fits[0] if len(fits) == 1 and len(lost) == 1 else None
        yield DanglingOutput(output.name, fits, take, location=Location(onnx_node=output.name))


def _unread(model: onnx.ModelProto) -> dict[str, str | None]:
    """Return the values that a node makes and nobody reads, with their types: one of them may be the lost output."""
    read = set(graph.readers(model.graph)) | {o.name for o in model.graph.output}
    types = infer(model).of
    return {o: types.get(o) for n in model.graph.node for o in n.output if o and o not in read}


def _cycles(model: onnx.ModelProto) -> Iterator[Finding]:
    for part in graph.graphs(model):
        if ring := _ring(part):
            yield GraphCycle(tuple(graph.label(n) for n in ring), location=_at(ring[0]))


def _recursion(model: onnx.ModelProto) -> Iterator[Finding]:
    """Functions of the model that call themselves, by way of others perhaps."""
    own = {(f.domain, f.name): f for f in model.functions}
    calls = {key: {k for p in graph.nodes_of(f) if (k := (p.node.domain, p.node.op_type)) in own} for key, f in own.items()}
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        ring = error.args[1][:-1]
        place = next((p for p in graph.places(model) if (p.node.domain, p.node.op_type) in ring), None)
        where = Location(onnx_node=place.label, op=place.node.op_type) if place is not None else Location()
        yield RecursiveFunctions(tuple(f"{domain}::{name}" for domain, name in ring), location=where)


def _ring(part: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return nodes that feed each other in a ring, or nothing."""
    makers = {output: index for index, node in enumerate(part.node) for output in node.output if output}
    needs = {i: {makers[name] for name in graph.reads(node) if name in makers} for i, node in enumerate(part.node)}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return [part.node[i] for i in error.args[1][:-1]]
    return []


def _initializers(model: onnx.ModelProto) -> Iterator[Finding]:
    for tensor, place in graph.stored(model):
        where = Location(onnx_node=place.label, op=place.node.op_type) if place is not None else Location()
        if dtypes.bits(tensor.data_type) is None and tensor.data_type not in (8, 23, 24):
            yield InitializerType(tensor.name, tensor.data_type, location=where)
            continue
        has, needs = _stored(tensor), external.needed(tensor)
        if has is not None and needs is not None and has != needs:
            word = dtypes.word(tensor.data_type)
            yield InitializerSize(tensor.name, has, needs, tuple(tensor.dims), word, location=where)


def _stored(tensor: onnx.TensorProto) -> int | None:
    """Return how many bytes of numbers a tensor holds itself, counted in its own element type."""
    if graph.external(tensor) or tensor.data_type == onnx.TensorProto.STRING:
        return None
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data)
    bits = dtypes.bits(tensor.data_type)
    if bits is None or bits < 8:
        return None
    typed = (tensor.float_data, tensor.double_data, tensor.int32_data, tensor.int64_data, tensor.uint64_data)
    count = max(len(t) for t in typed)
    return count // (2 if tensor.data_type in (14, 15) else 1) * bits // 8


def _at(node: onnx.NodeProto) -> Location:
    return Location(onnx_node=graph.label(node), op=node.op_type)


def duplicate_initializers(model: onnx.ModelProto) -> list[DuplicateInitializer]:
    """Return initializers that share a name; onnxruntime takes the last one without a word."""
    found = []
    for part in graph.graphs(model):
        for name, count in Counter(t.name for t in part.initializer).items():
            if count > 1:
                stored = [t for t in part.initializer if t.name == name]
                same = all(t.raw_data == stored[0].raw_data and t == stored[0] for t in stored)
                found.append(DuplicateInitializer(name, count, same, location=Location()))
    return found
