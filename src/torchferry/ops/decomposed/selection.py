"""Results whose size the data decides: masked_select, nonzero, unique_consecutive, repeat_interleave, bincount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from torchferry.foreign.torch_operators import aten


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


def unique_consecutive(self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Return the first of each run of equal slices, each slice's run, and how long the runs are."""
    flat = dim is None or len(self.shape) == 0
    x = op.Reshape(self, op.Constant(value_ints=[-1])) if flat else self
    axis = 0 if flat or dim is None else dim % len(self.shape)
    first = _begins_a_run(x, axis, 1 if flat else len(self.shape), self.dtype)
    run = op.Sub(op.CumSum(op.Cast(first, to=ir.DataType.INT64), op.Constant(value_int=0)), op.Constant(value_int=1))
    starts = op.Squeeze(op.NonZero(first), op.Constant(value_ints=[0]))
    ends = op.Concat(op.Slice(starts, op.Constant(value_ints=[1]), op.Constant(value_ints=[2**31 - 1])), op.Shape(first), axis=0)
    inverse = op.Reshape(run, op.Shape(self)) if flat else run
    nothing = op.Constant(value=ir.tensor([], dtype=ir.DataType.INT64))
    counts = op.Slice(op.Sub(ends, starts), op.Constant(value_ints=[0]), op.Shape(starts)) if return_counts else nothing
    return op.Compress(x, first, axis=axis), inverse if return_inverse else nothing, counts


def _begins_a_run(x: Any, axis: int, rank: int, dtype: Any) -> Any:
    """Return a mask along one axis of what differs from the slice before it; a NaN differs from everything."""
    at, size = op.Constant(value_ints=[axis]), op.Shape(x, start=axis, end=axis + 1)
    numbers = op.Cast(x, to=ir.DataType.INT32) if dtype in (ir.DataType.BOOL, ir.DataType.INT16, ir.DataType.UINT8) else x
    later = op.Slice(numbers, op.Constant(value_ints=[1]), size, at)
    before = op.Slice(numbers, op.Constant(value_ints=[0]), op.Sub(size, op.Constant(value_ints=[1])), at)
    differs = op.Cast(op.Not(op.Equal(later, before)), to=ir.DataType.INT32)
    others = [a for a in range(rank) if a != axis]
    if others:
        differs = op.ReduceMax(differs, op.Constant(value_ints=others), keepdims=0)
    some = op.Min(size, op.Constant(value_ints=[1]))  # of nothing, not even a first
    return op.Cast(
        op.Concat(op.Expand(op.Constant(value_ints=[1]), some), op.Cast(differs, to=ir.DataType.INT64), axis=0),
        to=ir.DataType.BOOL,
    )


def nonzero(self: Any) -> Any:
    """Return the places of what is not zero, one to a row; of a single number, a row without columns or none."""
    if len(self.shape) > 0:
        return op.Transpose(op.NonZero(op.Cast(self, to=ir.DataType.BOOL)), perm=[1, 0])
    some = op.Cast(op.Cast(op.Reshape(self, op.Constant(value_ints=[1])), to=ir.DataType.BOOL), to=ir.DataType.INT64)
    shape = op.Concat(some, op.Constant(value_ints=[0]), axis=0)
    return op.ConstantOfShape(shape, value=ir.tensor([0], dtype=ir.DataType.INT64))


def nonzero_static(self: Any, *, size: Any, fill_value: int = -1) -> Any:
    """Return the first places of what is not zero, and rows of `fill_value` where there are too few."""
    one = op.Constant(value_ints=[1])
    wanted = op.Reshape(size, one) if isinstance(size, ir.Value) else op.Constant(value_ints=[size])
    filler = op.Expand(op.Constant(value_ints=[fill_value]), op.Concat(wanted, op.Shape(op.Shape(self)), axis=0))
    return op.Slice(op.Concat(nonzero(self), filler, axis=0), op.Constant(value_ints=[0]), wanted, op.Constant(value_ints=[0]))


def bincount(self: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """Return how often each number from zero on occurs, or what the weights of its occurrences sum to."""
    numbers, one = op.Cast(self, to=ir.DataType.INT64), op.Constant(value_ints=[1])
    least = op.Reshape(minlength, one) if isinstance(minlength, ir.Value) else op.Constant(value_ints=[minlength])
    largest = op.ReduceMax(op.Concat(numbers, op.Constant(value_ints=[-1]), axis=0), keepdims=1)  # of nothing, too
    if weights is None:
        added, kind = op.Expand(one, op.Shape(numbers)), ir.DataType.INT64
    else:
        kind = ir.DataType.FLOAT if weights.dtype == ir.DataType.FLOAT else ir.DataType.DOUBLE
        added = op.Cast(weights, to=kind)
    nothing = op.ConstantOfShape(op.Max(least, op.Add(largest, one)), value=ir.tensor([0], dtype=kind))
    return op.ScatterElements(nothing, numbers, added, axis=0, reduction="add")


TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    aten.masked_select.default: masked_select,
    aten.repeat_interleave.Tensor: repeat_interleave,
    aten.bincount.default: bincount,
    aten.nonzero.default: nonzero,
    aten.nonzero_static.default: nonzero_static,
    aten.unique_consecutive.default: unique_consecutive,
}
