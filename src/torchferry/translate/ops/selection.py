"""Results whose size the data decides, and counts: masked_select, unique_consecutive, bincount, histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch import Tensor

aten = torch.ops.aten


def masked_select(self: Any, mask: Any) -> Any:
    """Return the elements under the mask, in order."""
    together = op.Max(op.Shape(self), op.Shape(mask)) if len(self.shape) == len(mask.shape) else _broadcast_shape(self, mask)
    flat = op.Reshape(op.Expand(self, together), op.Constant(value_ints=[-1]))
    return op.Compress(flat, op.Reshape(op.Expand(mask, together), op.Constant(value_ints=[-1])))


def _broadcast_shape(a: Any, b: Any) -> Any:
    """Return the shape that two tensors of different rank broadcast to."""
    missing = len(a.shape) - len(b.shape)
    ones = op.Constant(value_ints=[1] * abs(missing))
    short, long = (b, a) if missing > 0 else (a, b)
    return op.Max(op.Concat(ones, op.Shape(short), axis=0), op.Shape(long))


def repeat_interleave(repeats: Any, *, output_size: Any = None) -> Any:
    """Return each index as often as `repeats` says."""
    ends = op.CumSum(op.Cast(repeats, to=ir.DataType.INT64), op.Constant(value_int=0))
    total = op.Squeeze(op.Slice(ends, op.Constant(value_ints=[-1]), op.Constant(value_ints=[2**31 - 1])))
    place = op.Unsqueeze(op.Range(op.Constant(value_int=0), total, op.Constant(value_int=1)), op.Constant(value_ints=[1]))
    passed = op.Cast(op.GreaterOrEqual(place, ends), to=ir.DataType.INT64)
    return op.ReduceSum(passed, op.Constant(value_ints=[1]), keepdims=0)


def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements fall into each of equal bins."""
    x = self.reshape(-1)
    low, high = (torch.scalar_tensor(v, dtype=x.dtype) for v in (min, max))
    if min == max:
        low, high = (x.amin(), x.amax()) if min == 0 else (low, high)
        flat = low == high
        low, high = torch.where(flat, low - 1, low), torch.where(flat, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = ((x - low) * bins / (high - low)).floor().clamp(0, bins - 1).to(torch.int64)
    place = torch.where(inside, place, bins)
    return aten.scatter_add(torch.zeros(bins + 1, dtype=x.dtype), 0, place, torch.ones_like(x))[:bins]  # type: ignore[no-any-return]


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.histc.default: histc}
TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    aten.masked_select.default: masked_select,
    aten.repeat_interleave.Tensor: repeat_interleave,
}
