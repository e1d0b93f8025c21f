"""Running products, sums of exponentials, maxima and minima along an axis, element after element as torch computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.loop import accumulate


def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Return the running product."""
    x = self.to(dtype if dtype is not None else self.dtype if self.dtype.is_floating_point or self.is_complex() else torch.int64)
    if x.dim() == 0 or x.numel() == 0:
        return x.clone()
    items = x.movedim(dim, 0)
    return accumulate([_start(items, 1)], [items], lambda product, item: [product * item])[0].movedim(0, dim)


def _start(items: Tensor, number: float, dtype: torch.dtype | None = None) -> Tensor:
    """Return a number in the shape of one item; there may be none to take it from."""
    return torch.full(items.shape[1:], number, dtype=dtype or items.dtype)


def _loser(dtype: torch.dtype, beats: Callable[..., Any]) -> float:
    """Return the number that any other one beats."""
    limits = (-torch.inf, torch.inf) if dtype.is_floating_point else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return limits[0] if beats is torch.ge else limits[1]


def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the running sum of exponentials, scaled anew at every step."""
    if self.dim() == 0 or self.numel() == 0:
        return self.clone()
    items = self.movedim(dim, 0)

    def body(total: Tensor, item: Tensor) -> list[Tensor]:
        larger = torch.maximum(*(x.real if x.is_complex() else x for x in (total, item)))
        shift = torch.where(larger.isinf(), torch.zeros_like(larger), larger)
        return [((total - shift).exp() + (item - shift).exp()).log() + shift]

    return accumulate([_start(items, -torch.inf)], [items], body)[0].movedim(0, dim)


def _extreme(beats: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return cummax or cummin: the later of equal values wins, and a NaN stays."""

    def function(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if self.dim() == 0 or self.numel() == 0:
            return self.clone(), torch.zeros_like(self, dtype=torch.int64)
        x = self.to(torch.uint8) if self.dtype == torch.bool else self
        items = x.movedim(dim, 0)

        def body(best: Tensor, where: Tensor, item: Tensor, k: Tensor) -> list[Tensor]:
            better = beats(item, best) | item.isnan() if x.is_floating_point() else beats(item, best)
            return [torch.where(better, item, best), torch.where(better, k, where)]

        start = [_start(items, _loser(x.dtype, beats)), _start(items, 0, torch.int64)]
        values, indices = accumulate(start, [items, torch.arange(items.shape[0])], body)
        return values.movedim(0, dim).to(self.dtype), indices.movedim(0, dim)

    return function


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.cumprod.default: cumprod,
    aten.logcumsumexp.default: logcumsumexp,
    aten.cummax.default: _extreme(torch.ge),
    aten.cummin.default: _extreme(torch.le),
}
