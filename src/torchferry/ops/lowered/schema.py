"""What ONNX's schemas say of a node: since when it is written like this, and whether an older or newer opset takes it as is."""

from __future__ import annotations

import onnx
import onnx_ir as ir

# Schemas that read the same but mean something else before the version named here.
MEANS_ELSE_BEFORE = {
    "Softmax": 13,
    "LogSoftmax": 13,
    "Hardmax": 13,
    "Resize": 11,
    "Upsample": 9,
    "Scan": 9,
    "GroupNormalization": 21,
}
# ... of which these newer forms are other operators under the old name.
MEANS_ELSE_FROM = {"GroupNormalization": 21, "GridSample": 20, "DFT": 20}


def needed(model: ir.Model) -> int:
    """Return the lowest opset at which every node's schema is the one it was written for."""
    now = model.opset_imports.get("", 1)
    return max((since(node, now) for node in standard_nodes(model)), default=1)


def standard_nodes(model: ir.Model) -> list[ir.Node]:
    """Return the nodes of ONNX's own operators, those of subgraphs included."""
    return [n for n in ir.traversal.RecursiveGraphIterator(model.graph) if n.domain in ("", "ai.onnx")]


def since(node: ir.Node, opset: int) -> int:
    """Return the opset that brought the form of this operator which `opset` has; 1000 if it has none."""
    schema = _schema(node, opset)
    return 1000 if schema is None else int(schema.since_version)


def known(node: ir.Node, opset: int) -> bool:
    """Whether the opset has the operator at all."""
    return _schema(node, opset) is not None


def fits(node: ir.Node, opset: int, written_for: int) -> bool:
    """Whether the node, as it stands, is valid in `opset` and means there what it means in the opset it was written for."""
    schema = _schema(node, opset)
    if schema is None or _other_meaning(node, opset, written_for):
        return False
    if not schema.min_input <= len(node.inputs) <= schema.max_input or len(node.outputs) > schema.max_output:
        return False
    if any(required.required and name not in node.attributes for name, required in schema.attributes.items()):
        return False
    return all(name in schema.attributes or _is_default(node, name, written_for) for name in node.attributes) and _types_fit(
        node, schema
    )


def trim(node: ir.Node, opset: int) -> None:
    """Drop attributes that the opset does not know; `fits` has seen that they say nothing."""
    schema = _schema(node, opset)
    for name in [n for n in node.attributes if schema is not None and n not in schema.attributes]:
        node.attributes.pop(name)


def _other_meaning(node: ir.Node, opset: int, written_for: int) -> bool:
    low, high = min(opset, written_for), max(opset, written_for)
    changes = {MEANS_ELSE_BEFORE.get(node.op_type), MEANS_ELSE_FROM.get(node.op_type)} - {None}
    return any(low < change <= high for change in changes if change is not None)


def _is_default(node: ir.Node, name: str, opset: int) -> bool:
    schema = _schema(node, opset)
    if schema is None or name not in schema.attributes:
        return False
    default = schema.attributes[name].default_value
    return bool(default.name) and onnx.helper.get_attribute_value(default) in (node.attributes[name].value, _encoded(node, name))


def _encoded(node: ir.Node, name: str) -> object:
    value = node.attributes[name].value
    return value.encode() if isinstance(value, str) else value


def _types_fit(node: ir.Node, schema: onnx.defs.OpSchema) -> bool:
    formal = list(schema.inputs)
    for index, value in enumerate(node.inputs):
        if value is None or value.dtype is None or not formal:
            continue
        allowed = formal[min(index, len(formal) - 1)].types
        if f"tensor({value.dtype.name.lower()})" not in allowed:
            return False
    return True


def _schema(node: ir.Node, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return None
