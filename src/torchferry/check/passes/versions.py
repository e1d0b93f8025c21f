"""Passes that change the versions a file is stamped with, and the nodes where the versions differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.version_converter

from torchferry.check.passes.weave import Weaver, forget_shapes
from torchferry.check.reading import graph, schemas
from torchferry.edits.check import ConvertOpset, DropImports, ModerniseOldForms, SetIr, StampOpset

BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal", "PRelu"})


def set_ir(model: onnx.ModelProto, edit: SetIr) -> None:
    """Stamp another IR version; the graph is written the same way in both."""
    model.ir_version = edit.to


def stamp(model: onnx.ModelProto, edit: StampOpset) -> None:
    """Stamp the opset that the nodes are written for."""
    _restamp(model, edit.to, edit.domain)


def drop_imports(model: onnx.ModelProto, edit: DropImports) -> None:
    """Take away the imports of domains from which no node comes."""
    used = {p.node.domain for p in graph.places(model)} | {f.domain for f in model.functions}
    kept = [o for o in model.opset_import if o.domain in schemas.STANDARD or o.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def convert(model: onnx.ModelProto, edit: ConvertOpset) -> None:
    """Rewrite the model for another opset: by the stamp alone where no node in use differs, else with onnx's converter."""
    to, stamped = edit.to, graph.opset(model)
    if stamped is None:
        return
    parts = [(model.graph, stamped), *((f, graph.opset(f) or stamped) for f in model.functions)]
    if all(v == to or _same_form(p.node, v, to) for part, v in parts for p in graph.nodes_of(part) if not _foreign(p.node)):
        _restamp(model, to)
        return
    converted = onnx.version_converter.convert_version(graph.flat(model), to)
    if graph.opset(converted) != to:  # the converter may leave a model as it was without a word
        raise ValueError(f"onnx's version converter did not reach opset {to}")
    _keep_what_it_forgets(model, converted)
    model.CopyFrom(converted)


def _foreign(node: onnx.NodeProto) -> bool:
    """Say whether a node is not of the standard's own domain."""
    return node.domain not in schemas.STANDARD


def _same_form(node: onnx.NodeProto, a: int, b: int) -> bool:
    """Whether a node means the same under both opsets: the schemas differ in nothing but the types they allow."""
    one, two = (schemas.schema(node.op_type, min(v, schemas.NEWEST), node.domain) for v in (a, b))
    if one is None or two is None:
        return False
    return one.since_version == two.since_version or (schemas.misfit(node, b) is None and _formal(one) == _formal(two))


def _formal(schema: Any) -> tuple[Any, ...]:
    attributes = {n: (a.required, str(a.type), a.default_value.SerializeToString()) for n, a in schema.attributes.items()}
    inputs = [(p.name, p.type_str, str(p.option)) for p in schema.inputs]
    return attributes, inputs, [(p.name, p.type_str, str(p.option)) for p in schema.outputs], schema.deprecated


def _keep_what_it_forgets(old: onnx.ModelProto, new: onnx.ModelProto) -> None:
    """Carry over what the converter drops: the IR version, imports of other domains, metadata."""
    new.ir_version = old.ir_version
    have = {o.domain for o in new.opset_import}
    new.opset_import.extend(o for o in old.opset_import if o.domain not in have and o.domain not in schemas.STANDARD)
    del new.metadata_props[:]
    new.metadata_props.extend(old.metadata_props)
    kept = {n.name: n.metadata_props for n in old.graph.node if n.name}
    for node in new.graph.node:
        if not node.metadata_props and node.name in kept:
            node.metadata_props.extend(kept[node.name])


def _restamp(model: onnx.ModelProto, to: int, domain: str = "") -> None:
    same = schemas.STANDARD if domain in schemas.STANDARD else (domain,)
    entries = [o for o in model.opset_import if o.domain in same]
    for entry in entries:
        entry.version = to
    if not entries:
        model.opset_import.append(onnx.helper.make_opsetid(domain, to))
    for function in model.functions if domain in schemas.STANDARD else ():
        for entry in function.opset_import:
            if entry.domain in schemas.STANDARD:
                entry.version = to


# --- forms from before opset 7, for which no runtime has kernels -------------------------------------


def modernise(model: onnx.ModelProto, edit: ModerniseOldForms) -> None:
    """Write the forms of opsets 1 to 6 as opset 7 has them, and stamp that."""
    ranks = _ranks(model)
    for part in graph.graphs(model):
        for node in list(part.node):
            _modern(model, part, node, ranks)
    _restamp(model, edit.to)
    forget_shapes(model)


def _modern(model: onnx.ModelProto, part: onnx.GraphProto, node: onnx.NodeProto, ranks: dict[str, int]) -> None:
    values = graph.attributes(node)
    graph.set_attribute(node, "consumed_inputs", None)
    if node.op_type in BROADCASTING:
        if values.get("broadcast") and "axis" in values:
            _align(model, part, node, values["axis"], ranks)
        graph.set_attribute(node, "broadcast", None)
        graph.set_attribute(node, "axis", None)
    elif node.op_type == "Gemm":
        graph.set_attribute(node, "broadcast", None)
    elif node.op_type in ("BatchNormalization", "Dropout"):
        graph.set_attribute(node, "is_test", None)
        graph.set_attribute(node, "spatial", None)
        del node.output[1:]
    elif node.op_type == "Concat" and "axis" not in values:
        graph.set_attribute(node, "axis", 1)
    elif node.op_type == "Pad" and "paddings" in values:
        graph.set_attribute(node, "pads", values["paddings"])
        graph.set_attribute(node, "paddings", None)
    elif node.op_type == "Cast" and isinstance(values.get("to"), bytes):
        graph.set_attribute(node, "to", onnx.TensorProto.DataType.Value(values["to"].decode().upper()))
    elif node.op_type == "Reshape" and "shape" in values:
        name = graph.fresh_name(graph.value_names(model), f"{graph.label(node)}/shape")
        part.initializer.append(onnx.numpy_helper.from_array(np.asarray(values["shape"], np.int64), name))
        node.input.append(name)
        graph.set_attribute(node, "shape", None)


def _align(model: onnx.ModelProto, part: onnx.GraphProto, node: onnx.NodeProto, axis: int, ranks: dict[str, int]) -> None:
    """Give the second operand the trailing axes of size 1 that numpy's broadcasting needs where `axis` was said."""
    left, right = ranks.get(node.input[0]), ranks.get(node.input[1])
    if left is None or right is None:
        raise ValueError(f"the ranks at `{graph.label(node)}` are not known, so its axis={axis} cannot be rewritten")
    trailing = left - (axis % left if left else 0) - right
    if trailing > 0:
        weaver = Weaver(model, graph.label(node))
        node.input[1] = weaver.op("Unsqueeze", [node.input[1]], axes=list(range(right, right + trailing)))
        weaver.before(part, node)


def _ranks(model: onnx.ModelProto) -> dict[str, int]:
    inferred = onnx.shape_inference.infer_shapes(model)
    known = {t.name: len(t.dims) for t in model.graph.initializer}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        if value.type.tensor_type.HasField("shape"):
            known.setdefault(value.name, len(value.type.tensor_type.shape.dim))
    grown = True
    while grown:  # old forms are not in the inference's schemas: an elementwise result has its first operand's rank
        grown = False
        for node in model.graph.node:
            first = node.input[0] if node.input else ""
            if (
                first in known
                and node.output
                and node.output[0] not in known
                and (node.op_type in BROADCASTING or len(node.input) == 1)
            ):
                known[node.output[0]] = known[first]
                grown = True
    return known
