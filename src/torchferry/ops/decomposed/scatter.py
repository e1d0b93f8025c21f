"""Writes to places given by an index: scatter_reduce, index_reduce, put, and what ONNX's ScatterElements refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten

REDUCTIONS = {"sum", "prod", "mean", "amax", "amin"}


def _identity(reduce: str, dtype: torch.dtype) -> Any:
    """Return the number that a reduction does not see."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return -torch.inf if reduce == "amax" else torch.inf
    limits = torch.iinfo(torch.uint8 if dtype == torch.bool else dtype)
    return limits.min if reduce == "amax" else limits.max


def scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """Return `self` with `src` reduced into the places of `index`; a place that nothing goes to keeps its value."""
    if self.dim() == 0:
        one = scatter_reduce(self.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self)
        return one.reshape(())
    if index.numel() == 0:
        return self.clone()
    src = _cut(src, index)
    start = self if include_self else self.scatter(dim, index, _identity(reduce, self.dtype))
    if reduce == "mean":
        total = aten.scatter_add(start, dim, index, src)
        ones = torch.ones_like(self) if include_self else torch.zeros_like(self)
        count = aten.scatter_add(ones, dim, index, torch.ones_like(src))
        count = count if include_self else torch.where(count == 0, torch.ones_like(count), count)
        return total / count if self.is_floating_point() else torch.div(total, count, rounding_mode="floor")
    if reduce == "sum":
        return aten.scatter_add(start, dim, index, src)
    return aten.scatter_reduce.two(start, dim, index, src, reduce)


def scatter_reduce_or_keep(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return scatter_reduce in a form that is translated as it is, or taken apart where it is not."""
    direct = include_self and reduce in ("prod", "amax", "amin") and self.dim() > 0 and _same(src, index)
    if direct:
        return NotImplemented
    return scatter_reduce(self, dim, index, src, reduce, include_self=include_self)


def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return scatter_add with the shapes that ONNX takes; as it is where it has them already."""
    if self.dim() > 0 and index.dim() > 0 and _same(src, index):
        return NotImplemented
    if self.dim() == 0:
        return aten.scatter_add(self.reshape(1), 0, index.reshape(-1), _cut(src, index).reshape(-1)).reshape(())  # type: ignore[no-any-return]
    return aten.scatter_add(self, dim, index, _cut(src, index))  # type: ignore[no-any-return]


def scatter_with(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """Return the older scatter with `reduce` "add" or "multiply"."""
    return scatter_reduce(self, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


def scatter_value_with(self: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Tensor:
    """Return the older scatter of one number with `reduce`."""
    return scatter_with(self, dim, index, torch.full_like(index, value, dtype=self.dtype), reduce=reduce)


def index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """Return scatter_reduce with one index for a whole slice."""
    named = {"mean": "mean", "prod": "prod", "amax": "amax", "amin": "amin"}[reduce]
    if self.dim() == 0:
        return scatter_reduce(self, 0, index.reshape(-1), source.reshape(-1), named, include_self=include_self)
    shape = [1] * self.dim()
    shape[dim] = -1
    return scatter_reduce(self, dim, index.reshape(shape).expand_as(source), source, named, include_self=include_self)


def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return `self` with values written to places of its flat form."""
    flat, places = self.reshape(-1), index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    values = source.reshape(-1)
    written = aten.scatter_add(flat, 0, places, values) if accumulate else flat.scatter(0, places, values)
    return written.reshape(self.shape)


def take(self: Tensor, index: Tensor) -> Tensor:
    """Return the elements at places of the flat form."""
    flat = self.reshape(-1)
    return flat.index_select(0, index.reshape(-1)).reshape(index.shape)


def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return `self` with a diagonal replaced."""
    x = self.movedim((dim1, dim2), (-2, -1))
    rows, columns = torch.arange(x.shape[-2]).unsqueeze(-1), torch.arange(x.shape[-1])
    on = columns - rows == offset
    place = (rows if offset >= 0 else columns).expand(x.shape[-2], x.shape[-1]).clamp_max(src.shape[-1] - 1)
    spread = src.index_select(-1, place.reshape(-1)).reshape(x.shape)
    return torch.where(on, spread, x).movedim((-2, -1), (dim1, dim2))


def as_strided_scatter(self: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """Return `self` with a strided view of its memory replaced; where it is not laid out plainly, that is left undone."""
    if not self.is_contiguous():
        return NotImplemented
    place = torch.full((), 0 if storage_offset is None else storage_offset, dtype=torch.int64)
    for count, step in zip(size, stride, strict=True):
        place = place.unsqueeze(-1) + torch.arange(count) * step
    flat = self.reshape(-1).scatter(0, place.reshape(-1), src.expand(size).reshape(-1))
    return flat.reshape(self.shape)


def _cut(src: Tensor, index: Tensor) -> Tensor:
    """Return the part of `src` that the index covers: torch allows more, ONNX does not."""
    for axis in range(index.dim()):
        if not _is(src.shape[axis], index.shape[axis]):
            src = src.narrow(axis, 0, index.shape[axis])
    return src


def _same(src: Tensor, index: Tensor) -> bool:
    return all(_is(a, b) for a, b in zip(src.shape, index.shape, strict=True))


def _is(a: Any, b: Any) -> bool:
    return bool(str(a) == str(b))  # compared as words: a comparison of symbolic sizes would be kept as a condition


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.scatter_reduce.two: scatter_reduce_or_keep,
    aten.scatter_add.default: scatter_add,
    aten.scatter.reduce: scatter_with,
    aten.scatter.value_reduce: scatter_value_with,
    aten.index_reduce.default: index_reduce,
    aten.put.default: put,
    aten.take.default: take,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.as_strided_scatter.default: as_strided_scatter,
}
