"""Does the target implement every node? All that it lacks at once, each with what it has instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import onnx

from torchferry.check.passes import decompose
from torchferry.check.reading import graph, schemas
from torchferry.check.support import stamp
from torchferry.check.support.kernel_table import implements, versions_of
from torchferry.check.support.node_probe import may_be_asked
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import BY_ATTRIBUTE, Types
from torchferry.foreign import onnxruntime as ort
from torchferry.records import Location
from torchferry.records.findings import (
    AtenOperator,
    ComputedInOtherType,
    Instead,
    ModernForm,
    NewerOpset,
    NoKernel,
    OtherAttribute,
    UnknownOperator,
    WrittenOut,
)
from torchferry.releases import Target

# Where there is no kernel for a type: which to try instead, the one that loses least first.
INSTEAD: dict[str, tuple[str, ...]] = {
    "double": ("float",),
    "float16": ("float",),
    "bfloat16": ("float",),
    "float": ("double",),
    "bool": ("uint8", "int32", "float", "int64"),
    "int64": ("int32", "double", "float"),
    "uint64": ("int64", "double", "float"),
    "int32": ("int64", "float", "double"),
    "uint32": ("int64", "double"),
    "int16": ("int32", "float", "int64"),
    "uint16": ("int32", "float", "int64"),
    "int8": ("int32", "float", "int64"),
    "uint8": ("int32", "float", "int64"),
}


class Oracle(Protocol):
    """Whoever knows what a runtime implements: `NodeProber` for the installed one, `KernelTable` for any other release."""

    def lacks(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool: ...

    def takes(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool: ...


def doubtful(model: onnx.ModelProto, types: Types) -> bool:
    """Say whether the runtime's own table of kernels lacks one for some node; functions may still be written out."""
    kernels, versions = ort.kernels(), versions_of(model)
    asked = [p.node for p in graph.nodes_of(model.graph) if may_be_asked(p.node, types.of)]
    return any(not implements(kernels, n, types.of, versions) for n in asked)


def missing(model: onnx.ModelProto, types: Types, oracle: Oracle, target: Target) -> list[NoKernel]:
    """Return every node for which the runtime has no implementation, and what would do instead."""
    return [f for place in graph.nodes_of(model.graph) for f in _examine(place, types, oracle, target, graph.opset(model) or 1)]


def _examine(place: graph.NodePlace, types: Types, oracle: Oracle, target: Target, opset: int) -> Iterator[NoKernel]:
    node = place.node
    if not oracle.lacks(node, types.of):
        return
    words = tuple(sorted({w for v in (*node.input, *node.output) if v and (w := types.of.get(v))}))
    since = schemas.since(node.op_type, opset, node.domain)
    other = instead(node, types.of, oracle, target, opset)
    yield NoKernel(node.op_type, node.domain, since, words, other, location=Location(onnx_node=place.label, op=node.op_type))


def instead(node: onnx.NodeProto, types: dict[str, str], oracle: Oracle, target: Target, opset: int) -> Instead | None:
    """Return how the node can be had: by a newer opset, other types around it, another form; None if not."""
    if node.domain not in schemas.STANDARD and decompose.can(node):
        return WrittenOut()
    if node.domain in schemas.STANDARD and opset < stamp.LOWEST:
        return ModernForm()
    if node.domain in schemas.STANDARD:
        for version in _newer_forms(node, opset, target.opset):
            if schemas.misfit(node, version) is None and oracle.takes(node, types, version):
                return NewerOpset(version)
    name = BY_ATTRIBUTE.get(node.op_type, ("", ""))[0]
    if name in ("dtype", "output_datatype") and (value := graph.attributes(node).get(name)):
        for other in INSTEAD.get(dtypes.word(value), ()):
            changed = onnx.NodeProto()
            changed.CopyFrom(node)
            graph.set_attribute(changed, name, dtypes.ENUM[other])
            if oracle.takes(changed, types):
                return OtherAttribute(name, dtypes.word(value), other)
    return _other_type(node, types, oracle)


def _newer_forms(node: onnx.NodeProto, opset: int, most: int) -> list[int]:
    forms = {schemas.since(node.op_type, v): v for v in range(most, opset, -1)}
    return sorted(v for s, v in forms.items() if s is not None and s > opset)


def _other_type(node: onnx.NodeProto, types: dict[str, str], oracle: Oracle) -> ComputedInOtherType | None:
    """Return another type that the node has a kernel for: of all inputs of a type, or of those that share a variable."""
    apart, words = onnx.NodeProto(), {}  # each input under a name of its own: one value may stand in two places
    apart.CopyFrom(node)
    for index, name in enumerate(node.input):
        if name:
            apart.input[index] = f"{name}@{index}"
            words[apart.input[index]] = types[name]
    for places in _alike(apart, words):
        word = words[apart.input[places[0]]]
        for other in INSTEAD.get(word, ()):
            if oracle.takes(apart, {**words, **{apart.input[i]: other for i in places}}):
                return ComputedInOtherType(word, other, tuple(node.input[i] for i in places), tuple(places))
    return None


def _alike(node: onnx.NodeProto, types: dict[str, str]) -> list[list[int]]:
    """Return the places of inputs to be cast together: one for each type, then one for each type variable of the schema."""
    given = {index: types[name] for index, name in enumerate(node.input) if name}
    groups = [[i for i, w in given.items() if w == word] for word in dict.fromkeys(given.values())]
    schema = schemas.schema(node.op_type, schemas.NEWEST, node.domain)
    if schema is not None and schema.inputs:
        variables: dict[str, list[int]] = {}
        for index in given:
            variables.setdefault(schema.inputs[min(index, len(schema.inputs) - 1)].type_str, []).append(index)
        groups += [v for v in variables.values() if len({given[i] for i in v}) == 1 and v not in groups]
    return groups


def unknown_operators(model: onnx.ModelProto) -> list[UnknownOperator | AtenOperator]:
    """Return the nodes whose operator is neither the standard's, nor the runtime's, nor the model's own function."""
    own = {(f.domain, f.name) for f in model.functions}
    found: list[UnknownOperator | AtenOperator] = []
    for place in graph.places(model):
        node = place.node
        if (node.domain, node.op_type) in own or _known(node):
            continue
        where = Location(onnx_node=place.label, op=node.op_type)
        if node.domain in ("org.pytorch.aten", "aten") or node.op_type == "ATen":
            named = graph.attributes(node).get("operator", b"")
            operator = named.decode("utf-8", "replace") if isinstance(named, bytes) else ""
            found.append(AtenOperator(operator or node.op_type, location=where))
        else:
            found.append(UnknownOperator(node.op_type, node.domain, len(model.functions), location=where))
    return found


def _known(node: onnx.NodeProto) -> bool:
    if node.domain in schemas.STANDARD or node.domain.startswith("ai.onnx"):
        return schemas.known(node.op_type, node.domain)
    return ort.schema(node.domain, node.op_type) is not None
