"""Normalisation by the root of the mean square as one node, ONNX's own `RMSNormalization` of opset 23, where it is written out.

Pow(x, 2), ReduceMean, Add (epsilon), Sqrt, Reciprocal, Mul (x), Mul (the weight)
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass, ShapeInferencePass

from torchferry.ops.draft import Draft, constant_of, is_number, made, sizes
from torchferry.ops.lowered import raise_to

OPSET = 23  # the first that has the operator


def whole_norms(model: ir.Model) -> None:
    """Put an `RMSNormalization` in place of each that is written out, in place; where there is one, the opset becomes 23."""
    ShapeInferencePass()(model)  # values inside a translation have no shapes yet
    found = [(node, read) for node in model.graph if (read := _read(node)) is not None]
    if not found or raise_to(model, OPSET):
        return
    for node, (value, weight, epsilon) in found:
        draft = Draft(node)
        draft.swap(draft("RMSNormalization", value, weight, dtype=value.dtype, axis=-1, epsilon=epsilon))
    model.opset_imports[""] = OPSET
    RemoveUnusedNodesPass()(model)


def _read(node: ir.Node) -> tuple[ir.Value, ir.Value, float] | None:
    """Return what is normalised, its weight and epsilon, if a node is the last of a normalisation."""
    if (node.domain, node.op_type) != ("", "Mul"):
        return None
    for weight, normed in (node.inputs, reversed(node.inputs)):
        product = made(normed, "Mul")
        for value, factor in (product.inputs, reversed(product.inputs)) if product is not None else ():
            width = (sizes(value) or (None,))[-1]
            if (epsilon := _epsilon(value, factor)) is not None and isinstance(width, int) and sizes(weight) == (width,):
                assert value is not None
                assert weight is not None
                return (value, weight, epsilon) if value.dtype == ir.DataType.FLOAT else None
    return None


def _epsilon(value: ir.Value | None, factor: ir.Value | None) -> float | None:
    """Return epsilon, if a factor is 1 / sqrt(mean(value ** 2) + epsilon) over the last axis."""
    reciprocal = made(factor, "Reciprocal")
    root = made(reciprocal.inputs[0], "Sqrt") if reciprocal is not None else None
    total = made(root.inputs[0], "Add") if root is not None else None
    if total is None or (epsilon := constant_of(total.inputs[1])) is None or epsilon.size != 1:
        return None
    mean = made(total.inputs[0], "ReduceMean")
    square = made(mean.inputs[0], "Pow") if mean is not None else None
    if mean is None or square is None or square.inputs[0] is not value or not is_number(square.inputs[1], 2.0):
        return None
    last = len(mean.inputs) == 2 and is_number(mean.inputs[1], -1) and mean.attributes.get_int("keepdims", 1) == 1
    return float(epsilon.item()) if last else None
