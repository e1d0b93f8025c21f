"""Distances between rows: cdist in torch's own two forms, pdist, hypot, and the norm of a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten

BY_PRODUCT_ABOVE = 25  # rows; from there on torch itself takes the form with a matrix product


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    """Return the p-norm distance of every row of x1 to every row of x2."""
    many = any(isinstance(n, int) and n > BY_PRODUCT_ABOVE for n in (x1.shape[-2], x2.shape[-2]))
    if p == 2.0 and (compute_mode == 1 or (many and compute_mode != 2)):
        return _by_product(x1, x2)
    apart = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return _norm(apart, p)


def pdist(self: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of rows, each pair once."""
    rows, columns = _pairs(self.shape[0])
    return _norm(self.index_select(0, rows) - self.index_select(0, columns), p)


def _pairs(count: Any) -> tuple[Tensor, Tensor]:
    """Return the places above the diagonal of a square, row by row; torch.triu_indices would fix its size."""
    place = torch.arange(count * (count - 1) // 2)
    width = 2 * count - 1
    row = ((width - (width * width - 8 * place).to(torch.float64).sqrt()) / 2).to(torch.int64)

    def start(of: Tensor) -> Tensor:
        return torch.div(of * (width - of), 2, rounding_mode="floor")

    row = torch.where(start(row) > place, row - 1, row)  # the root may be off by its rounding
    row = torch.where(start(row + 1) <= place, row + 1, row)
    return row, place - start(row) + row + 1


def _norm(apart: Tensor, p: float) -> Tensor:
    size = apart.abs()
    if p == 0:
        return (size != 0).sum(-1).to(apart.dtype)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return (apart * apart).sum(-1).sqrt()
    if p == float("inf"):
        return size.amax(-1)
    return size.pow(p).sum(-1).pow(1.0 / p)


def _by_product(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the square root of |a|^2 - 2 ab + |b|^2, the form whose rounding the eager model has too."""
    square1, square2 = x1.pow(2).sum(-1, keepdim=True), x2.pow(2).sum(-1, keepdim=True)
    left = torch.cat([x1.mul(-2), square1, torch.ones_like(square1)], -1)
    right = torch.cat([x2, torch.ones_like(square2), square2], -1)
    return left.matmul(right.transpose(-2, -1)).clamp_min(0).sqrt()


def hypot(self: Tensor, other: Tensor) -> Tensor:
    """Return sqrt(a*a + b*b) without overflow in between."""
    a, b = self.abs(), other.abs()
    large, small = torch.maximum(a, b), torch.minimum(a, b)
    ratio = small / torch.where(large == 0, 1.0, large)
    result = large * (1 + ratio * ratio).sqrt()
    return torch.where(a.isinf() | b.isinf(), torch.inf, result)


def vector_norm(
    self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Return the norm of a single number; NotImplemented for a tensor with axes."""
    if self.dim() > 0 or self.is_complex():
        return NotImplemented
    size = self.abs() if dtype is None else self.to(dtype).abs()
    return (size != 0).to(size.dtype) if ord == 0 else size


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.cdist.default: cdist,
    aten._cdist_forward.default: cdist,
    aten.pdist.default: pdist,
    aten._pdist_forward.default: pdist,
    aten.hypot.default: hypot,
    aten.linalg_vector_norm.default: vector_norm,
}
