"""Whole numbers computed in a wider type where onnxruntime has no kernel for theirs: nothing is lost on the way.

torch adds, compares, sorts and picks booleans and small integers; ONNX, or the runtime, often takes int32 and int64 alone.
float16 is cast by the runtime itself, but not where values that are scattered meet.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute
from torchferry.ops.passes.types import schema_of, type_variables
from torchferry.releases.kernels import Kernel

D = ir.DataType
SMALL = (D.INT32, D.INT64)
WIDER = {
    D.BOOL: (D.INT32, D.INT64, D.INT8),
    **dict.fromkeys((D.INT8, D.UINT8, D.INT16, D.UINT16), SMALL),
    D.INT32: (D.INT64,),
}
MEETING = {D.BOOL: D.INT32, D.FLOAT16: D.FLOAT, D.BFLOAT16: D.FLOAT}  # what a scatter that reduces has no arithmetic for
Kernels = Mapping[tuple[str, str], tuple[Kernel, ...]]


def widen(model: ir.Model, kernels: Kernels) -> None:
    """Put casts around the nodes whose type the runtime does not implement, in place."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not any(_of(v) in WIDER or _of(v) in MEETING for v in (*node.inputs, *node.outputs)):
            continue
        schema = schema_of(node, model.opset_imports)
        if schema is not None and (change := _needed(node, schema, kernels)):
            _cast_around(node, schema, *change)


def _of(value: ir.Value | None) -> ir.DataType | None:
    return None if value is None else value.dtype


def _needed(node: ir.Node, schema: onnx.defs.OpSchema, kernels: Kernels) -> tuple[str, ir.DataType, ir.DataType] | None:
    """Return the type variable to change, from which type, and to which; None where all is well, or nothing helps."""
    bound = {name: d for v, name in type_variables(node, schema) if (d := _of(v)) is not None}
    if node.op_type in ("ScatterElements", "ScatterND") and attribute(node, "reduction", "none") != "none":
        return ("T", old, MEETING[old]) if (old := bound.get("T")) in MEETING else None
    known = [(types, first, last) for first, last, types in kernels.get(("", node.op_type), ())]
    fitting = [types for types, first, last in known if first <= schema.since_version <= last]
    if not fitting or any(_takes(types, bound) for types in fitting):
        return None
    for name, old in bound.items():
        for new in WIDER.get(old, ()):
            if any(_takes(types, {**bound, name: new}) for types in fitting):
                return name, old, new
    return None


def _takes(types: Mapping[str, tuple[str, ...]], bound: Mapping[str, ir.DataType]) -> bool:
    """Whether a kernel takes these types; float16 is cast by the runtime itself."""
    return all(
        f"tensor({_word(d)})" in types[name] or (d == D.FLOAT16 and "tensor(float)" in types[name])
        for name, d in bound.items()
        if name in types
    )


def _word(dtype: ir.DataType) -> str:
    return onnx.helper.tensor_dtype_to_string(int(dtype)).rpartition(".")[2].lower()


def _cast_around(node: ir.Node, schema: onnx.defs.OpSchema, name: str, old: ir.DataType, new: ir.DataType) -> None:
    draft, kinds = Draft(node), [kind for _, kind in type_variables(node, schema)]
    given = [
        draft("Cast", v, to=int(new), dtype=new) if kind == name and _of(v) == old else v
        for v, kind in zip(node.inputs, kinds, strict=False)
    ]
    results = list(draft.many(node.op_type, *given, outputs=len(node.outputs), **node.attributes))
    for index, (value, kind) in enumerate(zip(node.outputs, kinds[len(node.inputs) :], strict=True)):
        results[index].dtype = new if kind == name else value.dtype
        if kind == name:
            results[index] = draft("Cast", results[index], to=int(old), dtype=old)
    draft.swap(*results)
