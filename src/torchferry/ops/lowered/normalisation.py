"""LayerNormalization, softmaxes over any axis, GroupNormalization: written out where the opset lacks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute
from torchferry.ops.lowered.reductions import mean


def _layer_normalization(draft: Draft, wanted: int) -> Sequence[ir.Value] | None:
    node = draft.old
    value, scale = node.inputs[0], node.inputs[1]
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if value is None or value.shape is None or value.dtype is None:
        return None
    rank, first = len(value.shape), attribute(node, "axis", -1)
    axes = list(range(first % rank, rank))
    wide = value.dtype if value.dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT  # the spec computes in float
    x = value if value.dtype == wide else draft("Cast", value, to=int(wide), dtype=wide)
    middle = mean(draft, x, axes, wanted)
    centred = draft("Sub", x, middle, dtype=wide)
    variance = mean(draft, draft("Mul", centred, centred, dtype=wide), axes, wanted)
    epsilon = draft.constant(attribute(node, "epsilon", 1e-5), wide)
    deviation = draft("Sqrt", draft("Add", variance, epsilon, dtype=wide), dtype=wide)
    normal = draft("Div", centred, deviation, dtype=wide)
    if value.dtype != wide:
        normal = draft("Cast", normal, to=int(value.dtype), dtype=value.dtype)
    result = draft("Mul", normal, scale, dtype=value.dtype)
    result = result if bias is None else draft("Add", result, bias, dtype=value.dtype)
    return (
        [result, middle, draft("Reciprocal", deviation, dtype=wide)][: len(node.outputs)] if len(node.outputs) > 1 else [result]
    )


def _softmax(op_type: str) -> Callable[[Draft, int], Sequence[ir.Value] | None]:
    """Before 13 a softmax ran over all axes from `axis` on; over the last one both mean the same."""

    def lowering(draft: Draft, wanted: int) -> Sequence[ir.Value] | None:
        value = draft.old.inputs[0]
        if value is None or value.shape is None:
            return None
        rank = len(value.shape)
        axis, last = attribute(draft.old, "axis", -1) % max(rank, 1), rank - 1
        if axis == last:
            return [draft(op_type, value, axis=last, dtype=value.dtype)]
        order = [*range(rank)]
        order[axis], order[last] = order[last], order[axis]
        turned = draft("Transpose", value, perm=order, dtype=value.dtype)
        return [draft("Transpose", draft(op_type, turned, axis=last, dtype=value.dtype), perm=order, dtype=value.dtype)]

    return lowering


LOWERINGS = {
    "LayerNormalization": (9, _layer_normalization),
    "Softmax": (9, _softmax("Softmax")),
    "LogSoftmax": (9, _softmax("LogSoftmax")),
}
