"""Products of whole batches: where one reshape flattens the rows for a product and another puts them back, neither is needed."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from torchferry.ops.draft import Draft, attribute, made, sizes


def whole_products(model: ir.Model) -> None:
    """Write `Reshape, Gemm, Reshape` as `MatMul, Add` where the second reshape undoes the first, in place."""
    for node in list(model.graph):
        if node.op_type == "Reshape" and (gemm := made(node.inputs[0], "Gemm")) is not None and _plain(gemm):
            _widen(node, gemm)
    RemoveUnusedNodesPass()(model)


def _widen(back: ir.Node, gemm: ir.Node) -> None:
    flat = made(gemm.inputs[0], "Reshape")
    whole = flat.inputs[0] if flat is not None else None
    if whole is None or (rows := sizes(whole)) is None or (wanted := sizes(back.outputs[0])) is None or len(rows) < 3:
        return
    matrix = sizes(gemm.inputs[1])
    if matrix is None or (rows[-1], wanted) != (matrix[0], (*rows[:-1], matrix[1])):
        return
    draft = Draft(back)
    product = draft("MatMul", whole, gemm.inputs[1], dtype=whole.dtype)
    draft.swap(draft("Add", product, gemm.inputs[2], dtype=whole.dtype))


def _plain(gemm: ir.Node) -> bool:
    """Whether a Gemm is x @ W + b, with a b for each column."""
    turned = attribute(gemm, "transA", 0) or attribute(gemm, "transB", 0)
    scaled = attribute(gemm, "alpha", 1.0) != 1.0 or attribute(gemm, "beta", 1.0) != 1.0
    return not turned and not scaled and len(gemm.inputs) == 3 and len(sizes(gemm.inputs[2]) or ()) == 1
