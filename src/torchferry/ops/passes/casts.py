"""Casts that name their type: onnxruntime has no kernel for CastLike, and says so at every load."""

from __future__ import annotations

import onnx_ir as ir

from torchferry.ops.draft import Draft


def name_types(model: ir.Model) -> None:
    """Write `Cast` for every `CastLike` whose type is known, in place."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        like = node.inputs[1] if node.op_type == "CastLike" and node.domain == "" else None
        dtype = None if like is None else like.dtype
        if dtype is not None:
            draft = Draft(node)
            draft.swap(draft("Cast", node.inputs[0], to=int(dtype), dtype=dtype))
