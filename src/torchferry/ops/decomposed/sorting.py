"""Sorting, order statistics and searching. ONNX's TopK puts the lower index first among equals, so it is a stable sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch import Tensor

from torchferry.foreign.torch_operators import aten


def sort_stable(self: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Return values and indices in order; equal ones keep theirs."""
    if self.dim() == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    keys = self.to(torch.int32) if self.dtype in (torch.bool, torch.int8, torch.uint8, torch.int16) else self
    values, indices = torch.topk(keys, self.shape[dim], dim, descending, True)
    return values.to(self.dtype), indices


def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest value along an axis, and where it is."""
    if self.dim() == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    values, indices = torch.topk(self, k, dim, False, True)
    picked = values.narrow(dim, k - 1, 1), indices.narrow(dim, k - 1, 1)
    return picked if keepdim else (picked[0].squeeze(dim), picked[1].squeeze(dim))


def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the lower median along an axis, NaN if there is one."""
    if self.dim() == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    value, index = kthvalue(self, (self.shape[dim] + 1) // 2, dim, True)
    if self.is_floating_point():
        nan = self.isnan()
        spoiled = nan.any(dim, keepdim=True)
        value = torch.where(spoiled, torch.nan, value)
        index = torch.where(spoiled, nan.to(torch.int32).argmax(dim, keepdim=True), index)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def median(self: Tensor) -> Tensor:
    """Return the lower median of all elements."""
    return median_dim(self.reshape(-1), 0)[0]


def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the lower median of what is not NaN; NaN where nothing else is there."""
    if not self.is_floating_point():
        return median_dim(self, dim, keepdim)
    if self.dim() == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    nan = self.isnan()
    values, indices = torch.topk(torch.where(nan, torch.inf, self), self.shape[dim], dim, False, True)
    count = (~nan).sum(dim, keepdim=True)
    at = ((count - 1) // 2).clamp_min(0)
    value, index = values.gather(dim, at), indices.gather(dim, at)
    value = torch.where(count == 0, torch.nan, value)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def nanmedian(self: Tensor) -> Tensor:
    """Return the lower median of all elements that are not NaN."""
    return nanmedian_dim(self.reshape(-1), 0)[0]


def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the most frequent value, the smallest of several, and its last place."""
    if self.dim() == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    x = self.movedim(dim, -1)
    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    frequent = counts == counts.amax(-1, keepdim=True)
    largest = x.amax(-1, keepdim=True)
    value = torch.where(frequent, x, largest).amin(-1, keepdim=True)
    index = torch.where(x == value, torch.arange(x.shape[-1]), -1).amax(-1, keepdim=True)
    value, index = value.movedim(-1, dim), index.movedim(-1, dim)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return where each value would go: how many of the sequence stand before it."""
    ordered = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    after = right or side == "right"
    edges = ordered if ordered.dim() == 1 else ordered.unsqueeze(-2)
    values = self.unsqueeze(-1)
    before = ~(edges > values) if after else ~(edges >= values)  # a NaN goes to the end, as in torch
    return before.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def searchsorted_scalar(sorted_sequence: Tensor, self: Any, **options: Any) -> Tensor:
    """Return where one number would go; among whole ones it keeps its fraction."""
    dtype = torch.result_type(sorted_sequence, self)
    return searchsorted(sorted_sequence.to(dtype), torch.scalar_tensor(self, dtype=dtype), **options)


def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the bucket of each value."""
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


def bucketize_scalar(self: Any, boundaries: Tensor, **options: Any) -> Tensor:
    """Return the bucket of one number."""
    return searchsorted_scalar(boundaries, self, **options)


def topk(self: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the k largest or smallest with their places; of a single number, that number."""
    if len(self.shape) == 0:
        return op.Identity(self), op.Constant(value=ir.tensor(0, dtype=ir.DataType.INT64))
    count = op.Reshape(k, op.Constant(value_ints=[1])) if isinstance(k, ir.Value) else op.Constant(value_ints=[k])
    small = self.dtype in (ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16)
    keys = op.Cast(self, to=ir.DataType.INT32) if small else self
    values, places = op.TopK(keys, count, axis=dim, largest=int(largest), sorted=int(sorted))
    return (op.Cast(values, to=self.dtype) if small else values), places


TRANSLATIONS: dict[Any, Callable[..., Any]] = {aten.topk.default: topk}
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.sort.stable: sort_stable,
    aten.kthvalue.default: kthvalue,
    aten.median.default: median,
    aten.median.dim: median_dim,
    aten.nanmedian.default: nanmedian,
    aten.nanmedian.dim: nanmedian_dim,
    aten.mode.default: mode,
    aten.searchsorted.Tensor: searchsorted,
    aten.searchsorted.Scalar: searchsorted_scalar,
    aten.bucketize.Tensor: bucketize,
    aten.bucketize.Scalar: bucketize_scalar,
}
