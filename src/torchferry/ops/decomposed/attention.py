"""Scaled dot product attention as torch computes it: any rank, grouped heads, and zeros for a row that may look nowhere.

The row's fate is read off the mask alone, so that layers which share a mask share that work too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from torchferry.foreign.torch_operators import aten


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Return softmax(Q K^T scale + mask) V."""
    rank = len(key.shape)
    if enable_gqa:
        key, value = _repeated(query, key), _repeated(query, value)
    root = _root_of_scale(query, scale)
    turn = [*range(rank)]
    turn[-2:] = turn[-1], turn[-2]
    scores = op.MatMul(op.Mul(query, root), op.Mul(op.Transpose(key, perm=turn), root))
    if is_causal:
        attn_mask = _causal(query, key)
    if attn_mask is None:
        return op.MatMul(_dropped(op.Softmax(scores, axis=-1), dropout_p), value)
    last = op.Constant(value_ints=[-1])
    if is_causal or attn_mask.dtype == ir.DataType.BOOL:
        lowest = op.CastLike(op.Constant(value_float=-math.inf), query)
        weights = op.Softmax(op.Where(attn_mask, scores, lowest), axis=-1)
        alive = op.Cast(op.ReduceMax(op.Cast(attn_mask, to=ir.DataType.INT32), last, keepdims=1), to=ir.DataType.BOOL)
    else:
        weights = op.Softmax(op.Add(scores, attn_mask), axis=-1)
        highest = op.ReduceMax(attn_mask, last, keepdims=1)
        alive = op.Greater(highest, op.CastLike(op.Constant(value_float=-math.inf), highest))
    if not is_causal:  # row i of a causal mask always sees column 0
        weights = op.Where(alive, weights, op.CastLike(op.Constant(value_float=0.0), query))
    return op.MatMul(_dropped(weights, dropout_p), value)


def _root_of_scale(query: Any, scale: float | None) -> Any:
    """Return the square root of the scale: put on both factors, it keeps half precision from overflowing, as in torch."""
    size = query.shape[-1]
    if scale is None and isinstance(size, int):
        scale = 1 / math.sqrt(size)
    if scale is not None:
        return op.CastLike(op.Constant(value_float=math.sqrt(scale)), query)
    length = op.Cast(op.Shape(query, start=-1), to=ir.DataType.FLOAT)
    return op.CastLike(op.Reciprocal(op.Sqrt(op.Sqrt(length))), query)


def _causal(query: Any, key: Any) -> Any:
    """Return a mask that lets row i see columns 0 to i."""
    rows, columns = op.Shape(query, start=-2, end=-1), op.Shape(key, start=-2, end=-1)
    ones = op.Expand(op.Constant(value=ir.tensor([True])), op.Concat(rows, columns, axis=0))
    return op.Cast(op.Trilu(op.Cast(ones, to=ir.DataType.FLOAT), upper=0), to=ir.DataType.BOOL)


def _repeated(query: Any, shared: Any) -> Any:
    """Return keys or values with each head repeated for its group of query heads."""
    groups = _ratio(query.shape[-3], shared.shape[-3])
    if groups == 1:
        return shared
    axis = len(shared.shape) - 2
    spread = op.Unsqueeze(shared, op.Constant(value_ints=[axis]))
    before, after = op.Shape(shared, end=axis), op.Shape(shared, start=axis)
    count = (
        op.Constant(value_ints=[groups])
        if groups is not None
        else op.Div(op.Shape(query, start=-3, end=-2), op.Shape(shared, start=-3, end=-2))
    )
    wide = op.Expand(spread, op.Concat(before, count, after, axis=0))
    heads = op.Mul(op.Shape(shared, start=axis - 1, end=axis), count)
    outer = op.Shape(shared, end=axis - 1)
    return op.Reshape(wide, op.Concat(outer, heads, after, axis=0))


def _ratio(many: Any, few: Any) -> int | None:
    return many // few if isinstance(many, int) and isinstance(few, int) else None


def _dropped(weights: Any, probability: float) -> Any:
    if not probability:
        return weights
    kept, _ = op.Dropout(weights, op.Constant(value_float=float(probability)), op.Constant(value=ir.tensor(True)))
    return kept


TRANSLATIONS: dict[Any, Callable[..., Any]] = {aten.scaled_dot_product_attention.default: attention}
