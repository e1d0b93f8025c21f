"""Quantiles as torch computes them, with NaNs put last whatever the runtime's sort makes of them: nanquantile is about them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_dispatch import without_modes
from torchferry.foreign.torch_operators import aten


def quantiles(ignore_nan: bool) -> Callable[..., Tensor]:
    """Return quantile, or nanquantile."""

    def function(self: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
        share = q if isinstance(q, Tensor) else torch.scalar_tensor(q, dtype=self.dtype)
        axis = 0 if dim is None else dim % max(self.dim(), 1)
        x = self.reshape(-1) if dim is None or self.dim() == 0 else self.movedim(axis, -1)
        found = _along_last(x, share.reshape(-1), ignore_nan, interpolation).movedim(-1, 0)
        if keepdim and self.dim():
            found = found.reshape(-1, *[1] * self.dim()) if dim is None else found.unsqueeze(axis + 1)
        return found if share.dim() else found.squeeze(0)

    return function


@cache
def _wide_ranks() -> bool:
    """Return whether this release counts places in float64, as 2.15 does: the float32 next to 0.4 is more, and of 5 beyond 2."""
    with without_modes():
        return torch.arange(6.0).quantile(torch.tensor(0.4), interpolation="higher").item() == 3


def _along_last(x: Tensor, share: Tensor, ignore_nan: bool, interpolation: str) -> Tensor:
    """Return the quantiles of rows, [..., how many are asked for]."""
    nan = x.isnan()
    ordered = torch.topk(torch.where(nan, torch.inf, x), x.shape[-1], -1, False, True)[0]
    count = (~nan if ignore_nan else torch.ones_like(nan)).sum(-1, keepdim=True)
    counted_in = torch.float64 if _wide_ranks() else x.dtype
    rank = ((count - 1).to(counted_in) * share.to(counted_in)).clamp_min(0)
    rank = {"lower": rank.floor, "higher": rank.ceil, "nearest": rank.round}.get(interpolation, rank.clone)()
    below = rank.floor()
    value = ordered.gather(-1, below.to(torch.int64))
    if interpolation in ("linear", "midpoint"):
        weight = rank - below if interpolation == "linear" else torch.full_like(rank, 0.5)
        value = torch.lerp(value, ordered.gather(-1, rank.ceil().to(torch.int64)), weight.to(value.dtype))
    spoiled = count == 0 if ignore_nan else nan.any(-1, keepdim=True)
    return torch.where(spoiled, torch.nan, value)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.quantile.default: quantiles(ignore_nan=False),
    aten.quantile.scalar: quantiles(ignore_nan=False),
    aten.nanquantile.default: quantiles(ignore_nan=True),
    aten.nanquantile.scalar: quantiles(ignore_nan=True),
}
