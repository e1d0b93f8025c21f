"""The regularised incomplete gamma functions, lower and upper, in float64: neither is one minus the other where it is small.

Up to 100 the series of the lower or the continued fraction of the upper one, as x lies below or above a; from there on, where
both would take more and more steps, Gauss' rule over what counts of the integral. Right to about 1e-10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.loop import repeat
from torchferry.ops.decomposed.special import in_double, lgamma, polynomial

STEPS = 256
LARGE = 100.0
NODES, WEIGHTS = ((v / 2).tolist() for v in np.polynomial.legendre.leggauss(24))
BEND = tuple((-1.0) ** (n + 1) / n for n in range(9, 1, -1))  # of (log(1 + x) - x) / x^2, highest power first


def _stepwise(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return both functions by the series, or by the fraction."""
    scale = (a * x.log() - x - lgamma(a)).exp()

    def step(
        k: Tensor, total: Tensor, term: Tensor, b: Tensor, c: Tensor, d: Tensor, h: Tensor, a: Tensor, x: Tensor
    ) -> list[Tensor]:
        n = (k + 1).to(torch.float64)
        term = term * x / (a + n)
        b = b + 2
        weight = -n * (n - a)
        d = 1 / (weight * d + b)
        c = b + weight / c
        return [total + term, term, b, c, d, h * d * c, a, x]

    first = 1 / a
    b = x + 1 - a
    d = 1 / torch.where(b == 0, 1e-300, b)
    state = [first, first, b, torch.full_like(x, 1e300), d, d, a, x]
    total, _, _, _, _, h, _, _ = repeat(STEPS, state, step)
    by_series, lower, upper = x < a + 1, total * scale, h * scale
    return torch.where(by_series, lower, 1 - upper), torch.where(by_series, 1 - lower, upper)


def _by_quadrature(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return both functions from the integral between x and where nothing is left, on that side of the peak where x lies."""
    peak = (a - 1).clamp_min(1)
    width = peak.sqrt()
    above = x > peak
    right, left = torch.maximum(peak + 11.5 * width, x + 6 * width), torch.minimum(peak - 7.5 * width, x - 5 * width)
    span = torch.where(above, right, left.clamp_min(0)) - x
    places, weights = (torch.stack([torch.scalar_tensor(v, dtype=torch.float64) for v in vs]) for vs in (NODES, WEIGHTS))
    at = x.unsqueeze(-1) + span.unsqueeze(-1) * (places + 0.5)
    middle = peak.unsqueeze(-1)
    heights = (middle * _bend((at - middle) / middle)).exp()
    height = (2 * math.pi * peak).rsqrt() * (1 / (360 * peak * peak * peak) - 1 / (12 * peak)).exp()  # of the peak
    part = (heights * weights).sum(-1) * span * height
    return torch.where(above, 1 - part, -part), torch.where(above, part, 1 + part)


def _bend(x: Tensor) -> Tensor:
    """Return log(1 + x) - x, which near zero is what two equal numbers leave over."""
    return torch.where(x.abs() < 0.01, x * x * polynomial(x, BEND), x.log1p() - x)


def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and the upper function."""
    a, x = torch.broadcast_tensors(a, x)
    small, large = _stepwise(a, x), _by_quadrature(a, x)
    nothing, everything = (x == 0) | a.isinf(), (a == 0) | x.isinf()
    bad = (x < 0) | (a < 0) | (nothing & everything)

    def settled(which: int) -> Tensor:
        value = torch.where(a < LARGE, small[which], large[which])
        value = torch.where(nothing, float(which), torch.where(everything, 1.0 - which, value))
        return torch.where(bad, torch.nan, value)

    return settled(0), settled(1)


def _igamma(a: Tensor, x: Tensor) -> Tensor:
    return _incomplete(a, x)[0]


def _igammac(a: Tensor, x: Tensor) -> Tensor:
    return _incomplete(a, x)[1]


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.igamma.default: in_double(_igamma),
    aten.igammac.default: in_double(_igammac),
}
