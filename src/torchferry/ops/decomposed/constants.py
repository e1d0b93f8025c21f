"""Tensors made of one number, exact in their own dtype: torch.onnx rounds the number to float32 before it casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from torchferry.foreign.torch_operators import aten


def _number(value: Any, dtype: Any) -> Any:
    """Return a number as a constant of a dtype; one that is known at run time only, cast to it."""
    if isinstance(value, ir.Value):
        return op.Cast(value, to=dtype)
    wide = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
    exact = ir.tensor(wide.numpy())
    if dtype == exact.dtype:
        return op.Constant(value=exact)
    return op.Cast(op.Constant(value=exact), to=dtype)


def _shape(size: Any) -> Any:
    """Return a shape as one tensor."""
    if isinstance(size, ir.Value):
        return size
    if all(isinstance(s, int) for s in size):
        return op.Constant(value=ir.tensor(list(size), dtype=ir.DataType.INT64))
    one = op.Constant(value_ints=[1])
    return op.Concat(*(op.Reshape(s, one) if isinstance(s, ir.Value) else op.Constant(value_ints=[s]) for s in size), axis=0)


def _kind(value: Any, dtype: int) -> ir.DataType:
    """Return the dtype asked for, otherwise the one that torch gives to such a number."""
    if dtype != -1:
        return ir.DataType(dtype)
    if isinstance(value, ir.Value):
        return value.dtype or ir.DataType.FLOAT
    return ir.DataType.BOOL if isinstance(value, bool) else ir.DataType.INT64 if isinstance(value, int) else ir.DataType.FLOAT


def scalar_tensor(s: Any, dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False) -> Any:
    """Return a number without axes."""
    return _number(s, ir.DataType.FLOAT if dtype == -1 else ir.DataType(dtype))


def full(
    size: Sequence[Any], fill_value: Any, dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False
) -> Any:
    """Return a tensor full of a number."""
    return op.Expand(_number(fill_value, _kind(fill_value, dtype)), _shape(size))


def full_like(
    self: Any,
    fill_value: Any,
    dtype: int = -1,
    layout: str = "",
    device: str = "",
    pin_memory: bool = False,
    memory_format: str = "",
) -> Any:
    """Return a tensor of another one's shape, full of a number."""
    return op.Expand(_number(fill_value, self.dtype if dtype == -1 else ir.DataType(dtype)), op.Shape(self))


TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    aten.scalar_tensor.default: scalar_tensor,
    aten.full.default: full,
    aten.full_like.default: full_like,
}
