"""Types of the values between nodes, where the translation left them open: as the operators' schemas tell them.

A pass that decides by type would otherwise leave such a node alone, and onnxruntime refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from torchferry.ops.draft import attribute


def know_types(model: ir.Model) -> None:
    """Give each value without a type the one that follows from its node's inputs, in place."""
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        schema = schema_of(node, model.opset_imports)
        if schema is None or all(value.dtype is not None for value in node.outputs):
            continue
        pairs = type_variables(node, schema)
        known = {name: value.dtype for value, name in pairs if value is not None and value.dtype is not None}
        for value, name in pairs[len(node.inputs) :]:
            dtype = _cast_to(node) or known.get(name) or _only(schema, name)
            if value is not None and value.dtype is None and dtype is not None:
                value.dtype = dtype


def schema_of(node: ir.Node, opsets: Mapping[str, int]) -> onnx.defs.OpSchema | None:
    """Return the schema of a node of ONNX's own domain; None for others."""
    try:
        return onnx.defs.get_schema(node.op_type, opsets[""], "") if node.domain == "" else None
    except (onnx.defs.SchemaError, KeyError):  # a model may be nodes of other domains alone
        return None


def type_variables(node: ir.Node, schema: onnx.defs.OpSchema) -> list[tuple[ir.Value | None, str]]:
    """Return each input and output with the type, or the type variable, that the schema gives it."""
    pairs: list[tuple[ir.Value | None, str]] = []
    for values, formal in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        pairs += [(v, formal[min(i, len(formal) - 1)].type_str) for i, v in enumerate(values)]
    return pairs


def _cast_to(node: ir.Node) -> ir.DataType | None:
    return ir.DataType(attribute(node, "to", 0)) if node.op_type == "Cast" else None


def _only(schema: onnx.defs.OpSchema, name: str) -> ir.DataType | None:
    """Return the type of an input or output that can have no other."""
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == name), [name])
    word = allowed[0].removeprefix("tensor(").removesuffix(")").upper()
    return ir.DataType.__members__.get(word) if len(allowed) == 1 else None
