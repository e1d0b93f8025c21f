"""Standard deviations: torch takes the root in a wider type, so that the square of what is spread far does not overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}


def std(self: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    """Return the root of the variance, taken in a wider type where there is one."""
    wide = self.to(WIDER.get(self.dtype, self.dtype))
    return wide.var(dim, correction=correction, keepdim=keepdim).sqrt().to(self.dtype.to_real())


def std_of_dims(self: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """Return the same under its older signature."""
    return std(self, dim, correction=int(unbiased), keepdim=keepdim)


def std_of_all(self: Tensor, unbiased: bool = True) -> Tensor:
    """Return the same of all numbers."""
    return std(self, correction=int(unbiased))


def with_mean(deviation: Callable[..., Tensor]) -> Callable[..., Any]:
    """Return a function that gives a deviation and the mean beside it."""

    def function(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        spread = deviation(self, *args, **kwargs)
        dims = args[0] if args and not isinstance(args[0], bool) else kwargs.get("dim")
        keepdim = kwargs.get("keepdim", args[2] if len(args) > 2 else False)
        return spread, self.mean(dims, keepdim=keepdim) if dims else self.mean().reshape(spread.shape)

    return function


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.std.correction: std,
    aten.std.dim: std_of_dims,
    aten.std.default: std_of_all,
    aten.std_mean.correction: with_mean(std),
    aten.std_mean.dim: with_mean(std_of_dims),
    aten.std_mean.default: with_mean(std_of_all),
}
