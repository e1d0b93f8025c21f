"""Chebyshev, Hermite, Laguerre and Legendre polynomials by their recurrences, the degree being a tensor too.

Degrees above 128 come out as NaN rather than wrong; torch itself stops there for Hermite's in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.loop import repeat
from torchferry.ops.decomposed.special import in_double

HIGHEST = 128
Next = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # (k, x, P_k, P_k-1) -> P_k+1


def _chebyshev_next(k: Tensor, x: Tensor, q: Tensor, p: Tensor) -> Tensor:
    return (x + x) * q - p


def family(first: Callable[[Tensor], Tensor], following: Next, shifted: bool = False) -> Callable[..., Tensor]:
    """Return P_n(x) for P_0 = 1, P_1 = `first` and a recurrence."""

    def function(x: Tensor, n: Tensor) -> Tensor:
        x, n = torch.broadcast_tensors(x, n.trunc())
        x = x + x - 1 if shifted else x

        def step(k: Tensor, p: Tensor, q: Tensor, x: Tensor, n: Tensor) -> list[Tensor]:
            degree = k.to(torch.float64) + 1
            going = degree < n
            return [torch.where(going, q, p), torch.where(going, following(degree, x, q, p), q), x, n]

        _, value, _, _ = repeat(HIGHEST, [torch.ones_like(x), first(x), x, n], step)
        value = torch.where(n < 0, 0.0, torch.where(n == 0, 1.0, value))
        return torch.where(n > HIGHEST, torch.nan, value)

    return in_double(function)


FAMILIES = {
    "chebyshev_polynomial_t": family(lambda x: x, _chebyshev_next),
    "chebyshev_polynomial_u": family(lambda x: x + x, _chebyshev_next),
    "chebyshev_polynomial_v": family(lambda x: x + x - 1, _chebyshev_next),
    "chebyshev_polynomial_w": family(lambda x: x + x + 1, _chebyshev_next),
    "shifted_chebyshev_polynomial_t": family(lambda x: x, _chebyshev_next, shifted=True),
    "shifted_chebyshev_polynomial_u": family(lambda x: x + x, _chebyshev_next, shifted=True),
    "shifted_chebyshev_polynomial_v": family(lambda x: x + x - 1, _chebyshev_next, shifted=True),
    "shifted_chebyshev_polynomial_w": family(lambda x: x + x + 1, _chebyshev_next, shifted=True),
    "hermite_polynomial_h": family(lambda x: x + x, lambda k, x, q, p: (x + x) * q - 2 * k * p),
    "hermite_polynomial_he": family(lambda x: x, lambda k, x, q, p: x * q - k * p),
    "laguerre_polynomial_l": family(lambda x: 1 - x, lambda k, x, q, p: ((k + k + 1 - x) * q - k * p) / (k + 1)),
    "legendre_polynomial_p": family(lambda x: x, lambda k, x, q, p: ((k + k + 1) * x * q - k * p) / (k + 1)),
}


def _with_number_first(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, n: function(torch.full_like(n, float(x)), n)


def _with_number_last(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, n: function(x, torch.full_like(x, float(n)))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {}
for _name, _function in FAMILIES.items():
    _packet = getattr(aten, f"special_{_name}")
    DECOMPOSITIONS[_packet.default] = _function
    DECOMPOSITIONS[_packet.x_scalar] = _with_number_first(_function)
    DECOMPOSITIONS[_packet.n_scalar] = _with_number_last(_function)
