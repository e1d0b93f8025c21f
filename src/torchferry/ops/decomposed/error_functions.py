"""The error function, its complement, scaled form, logarithm and inverses, in float64 as Cephes computes them.

Each is right to about 1e-14 before it is rounded to the argument's dtype. onnxruntime has an Erf of its own, for float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed import cephes
from torchferry.ops.decomposed.special import in_double, polynomial

FAR = 1e15  # where powers of x are still numbers, and 1 / x is all that is left of the quotients


def _tail(size: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x) for x >= 1."""
    x = size.clamp_max(FAR)
    near = polynomial(x, cephes.ERFC_P) / polynomial(x, cephes.ERFC_Q)
    far = polynomial(x, cephes.ERFC_R) / polynomial(x, cephes.ERFC_S)
    return torch.where(size < 8, near, far) * torch.where(size > FAR, FAR / size, 1.0)  # beyond, it falls as 1 / x


def _middle(x: Tensor) -> Tensor:
    """Return erf(x) for |x| <= 1."""
    square = x * x
    return x * polynomial(square, cephes.ERF_T) / polynomial(square, cephes.ERF_U)


def erf(x: Tensor) -> Tensor:
    """Return the error function."""
    size = x.abs()
    outer = 1 - _tail(size) * (-x * x).exp()
    return torch.where(size <= 1, _middle(x), torch.where(x < 0, -outer, outer))


def _erfc(x: Tensor) -> Tensor:
    """Return erfc with its tail, which one minus erf would lose."""
    size = x.abs()
    tail = _tail(size) * (-x * x).exp()
    return torch.where(size <= 1, 1 - _middle(x), torch.where(x < 0, 2 - tail, tail))


def _erfcx(x: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x)."""
    tail = torch.where(x <= 1, (x * x).exp() * _erfc(x), _tail(x.clamp_min(1)))
    return torch.where(x.isnan(), x, tail)


def _log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    return torch.where(x < -1, (_erfcx(-t) / 2).log() - t * t, torch.log1p(-_erfc(t) / 2))


def _erfinv(y: Tensor) -> Tensor:
    """Return the inverse of erf: torch's own rational start and two steps of Newton's method."""
    size = y.abs()
    z = y * y
    middle = y * polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899))
    middle = middle / polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    z = (-((1 - size) / 2).log()).sqrt()
    outer = polynomial(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454)) / polynomial(z, (1.6370678, 3.5438892, 1.0))
    x = torch.where(size <= 0.7, middle, torch.where(y < 0, -outer, outer))
    for _ in range(2):
        x = x - (erf(x) - y) / ((2 / math.sqrt(math.pi)) * (-x * x).exp())
    x = torch.where(size == 1, torch.inf * y, x)
    return torch.where(size > 1, torch.nan, x)


def _ndtri(p: Tensor) -> Tensor:
    edge = math.exp(-2)
    upper = p > 1 - edge
    y = torch.where(upper, 1 - p, p)
    centre = y - 0.5
    square = centre * centre
    middle = centre + centre * square * polynomial(square, cephes.NDTRI_P0) / polynomial(square, cephes.NDTRI_Q0)
    x = (-2 * y.log()).sqrt()
    z = 1 / x
    near = z * polynomial(z, cephes.NDTRI_P1) / polynomial(z, cephes.NDTRI_Q1)
    far = z * polynomial(z, cephes.NDTRI_P2) / polynomial(z, cephes.NDTRI_Q2)
    tail = x - x.log() / x - torch.where(x < 8, near, far)
    value = torch.where(y > edge, middle * math.sqrt(2 * math.pi), torch.where(upper, tail, -tail))
    value = torch.where(p == 0, -torch.inf, torch.where(p == 1, torch.inf, value))
    return torch.where((p < 0) | (p > 1), torch.nan, value)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.special_erfcx.default: in_double(_erfcx),
    aten.erfc.default: in_double(_erfc),
    aten.special_log_ndtr.default: in_double(_log_ndtr),
    aten.erfinv.default: in_double(_erfinv),
    aten.special_ndtri.default: in_double(_ndtri),
}
DOUBLES: dict[Any, Callable[..., Any]] = {aten.erf.default: erf}
