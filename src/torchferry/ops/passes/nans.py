"""Maxima and minima that pass a NaN on, as torch's do; onnxruntime's may lose it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torchferry.ops.draft import Draft

CONCERNED = {"ReduceMax", "ReduceMin", "MaxPool"}


def propagate_nan(model: ir.Model) -> None:
    """Let ReduceMax, ReduceMin and MaxPool give NaN wherever they see one."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        value = node.inputs[0] if node.inputs else None
        if node.op_type not in CONCERNED or value is None or value.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            continue
        draft = Draft(node)
        kept = {name: a.value for name, a in node.attributes.items()}
        results = list(draft.many(node.op_type, *node.inputs, outputs=len(node.outputs), dtype=value.dtype, **kept))
        marks = draft("Cast", draft("IsNaN", value), to=int(ir.DataType.FLOAT), dtype=ir.DataType.FLOAT)
        widest = "ReduceMax" if node.op_type == "ReduceMin" else node.op_type
        seen = draft("Cast", draft(widest, marks, *node.inputs[1:], **kept), to=int(ir.DataType.BOOL), dtype=ir.DataType.BOOL)
        nan = draft.constant(np.nan, value.dtype)
        draft.swap(draft("Where", seen, nan, results[0], dtype=value.dtype), *results[1:])
