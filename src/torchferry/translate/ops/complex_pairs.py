"""Complex numbers as pairs of real ones on a last axis: what torch.onnx's own pair functions leave out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

aten = torch.ops.aten


def constant_pad(self: Any, pad: Sequence[int], value: float = 0.0) -> Any:
    """Return the tensor padded with zeros; the pair axis stays as it is."""
    rank = len(self.shape) - 1
    starts, ends = [0] * (rank + 1), [0] * (rank + 1)
    for index in range(len(pad) // 2):
        axis = rank - 1 - index
        starts[axis], ends[axis] = int(pad[2 * index]), int(pad[2 * index + 1])
    if value != 0:
        raise ValueError("complex tensors are padded with zero only")
    return op.Pad(self, op.Constant(value_ints=starts + ends))


def conjugate(self: Any) -> Any:
    """Return the conjugate."""
    return op.Mul(self, op.CastLike(op.Constant(value=ir.tensor([1.0, -1.0], dtype=ir.DataType.FLOAT)), self))


def absolute(self: Any) -> Any:
    """Return the absolute value, scaled by the larger part so that its square does not overflow."""
    parts = op.Abs(self)
    last = op.Constant(value_ints=[-1])
    larger = op.ReduceMax(parts, last, keepdims=1)
    one = op.CastLike(op.Constant(value_float=1.0), larger)
    zero = op.CastLike(op.Constant(value_float=0.0), larger)
    plain = op.Or(op.Equal(larger, zero), op.IsInf(larger))  # where there is nothing to scale by
    scale = op.Where(plain, one, larger)
    return op.Squeeze(op.Mul(op.ReduceL2(op.Div(parts, scale), last, keepdims=1), scale), last)


COMPLEX_TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    aten.constant_pad_nd.default: constant_pad,
    aten._conj_physical.default: conjugate,
    aten.abs.default: absolute,
}
