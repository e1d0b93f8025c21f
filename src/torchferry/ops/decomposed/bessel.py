"""Bessel and Airy functions: the Cephes approximations that torch uses, evaluated in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed import cephes
from torchferry.ops.decomposed.loop import repeat
from torchferry.ops.decomposed.special import in_double, polynomial


def _chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Return a Chebyshev series, highest term first and the last one halved."""
    a, p, q = torch.full_like(x, coefficients[0]), torch.zeros_like(x), torch.zeros_like(x)
    for coefficient in coefficients[1:]:
        p, q = q, a
        a = x * q - p + coefficient
    return 0.5 * (a - p)


def _scaled_i0(x: Tensor) -> Tensor:
    size = x.abs()
    safe = size.clamp_min(8.0)
    return torch.where(size <= 8, _chebyshev(size / 2 - 2, cephes.I0_A), _chebyshev(32 / safe - 2, cephes.I0_B) / safe.sqrt())


def _scaled_i1(x: Tensor) -> Tensor:
    size = x.abs()
    safe = size.clamp_min(8.0)
    value = torch.where(
        size <= 8, _chebyshev(size / 2 - 2, cephes.I1_A) * size, _chebyshev(32 / safe - 2, cephes.I1_B) / safe.sqrt()
    )
    return torch.where(x < 0, -value, value)


def _i0(x: Tensor) -> Tensor:
    return x.abs().exp() * _scaled_i0(x)


def _i1(x: Tensor) -> Tensor:
    return x.abs().exp() * _scaled_i1(x)


def _positive_only(x: Tensor, value: Tensor, at_zero: float) -> Tensor:
    return torch.where(x < 0, torch.nan, torch.where(x == 0, at_zero, value))


def _k0(x: Tensor, scaled: bool) -> Tensor:
    small, large = x.clamp(max=2.0), x.clamp_min(2.0)
    near = _chebyshev(small * small - 2, cephes.K0_A) - (0.5 * small).log() * _i0(small)
    far = _chebyshev(8 / large - 2, cephes.K0_B) / large.sqrt()
    value = torch.where(x <= 2, near * small.exp() if scaled else near, far if scaled else far * (-large).exp())
    return _positive_only(x, value, torch.inf)


def _k1(x: Tensor, scaled: bool) -> Tensor:
    small, large = x.clamp(max=2.0), x.clamp_min(2.0)
    near = (0.5 * small).log() * _i1(small) + _chebyshev(small * small - 2, cephes.K1_A) / small
    far = _chebyshev(8 / large - 2, cephes.K1_B) / large.sqrt()
    value = torch.where(x <= 2, near * small.exp() if scaled else near, far if scaled else far * (-large).exp())
    return _positive_only(x, value, torch.inf)


def _waves(x: Tensor, tables: tuple[Sequence[float], ...], phase: float) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine parts that J and Y are made of for large arguments."""
    pp, pq, qp, qq = tables
    z = 25 / (x * x)
    even, odd = polynomial(z, pp) / polynomial(z, pq), 5 / x * polynomial(z, qp) / polynomial(z, qq)
    turn, size = x - phase, math.sqrt(2 / math.pi) / x.sqrt()
    return (even * turn.cos() - odd * turn.sin()) * size, (even * turn.sin() + odd * turn.cos()) * size


def _waves0(x: Tensor) -> tuple[Tensor, Tensor]:
    return _waves(x, (cephes.J0_PP, cephes.J0_PQ, cephes.J0_QP, cephes.J0_QQ), math.pi / 4)


def _waves1(x: Tensor) -> tuple[Tensor, Tensor]:
    return _waves(x, (cephes.J1_PP, cephes.J1_PQ, cephes.J1_QP, cephes.J1_QQ), 3 * math.pi / 4)


def _j0(x: Tensor) -> Tensor:
    size = x.abs()
    z = size * size
    near = (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * polynomial(z, cephes.J0_RP) / polynomial(z, cephes.J0_RQ)
    near = torch.where(size <= 1e-5, 1 - z / 4, near)
    return torch.where(size <= 5, near, _waves0(size.clamp_min(5.0))[0])


def _j1(x: Tensor) -> Tensor:
    size = x.abs()
    z = size * size
    near = polynomial(z, cephes.J1_RP) / polynomial(z, cephes.J1_RQ) * size
    near = near * (z - 14.6819706421238932572) * (z - 49.2184563216946036703)
    value = torch.where(size <= 5, near, _waves1(size.clamp_min(5.0))[0])
    return torch.where(x < 0, -value, value)


def _y0(x: Tensor) -> Tensor:
    z = x * x
    near = polynomial(z, cephes.Y0_YP) / polynomial(z, cephes.Y0_YQ) + 2 / math.pi * x.log() * _j0(x)
    return _positive_only(x, torch.where(x <= 5, near, _waves0(x.clamp_min(5.0))[1]), -torch.inf)


def _y1(x: Tensor) -> Tensor:
    z = x * x
    near = x * polynomial(z, cephes.Y1_YP) / polynomial(z, cephes.Y1_YQ) + 2 / math.pi * (_j1(x) * x.log() - 1 / x)
    return _positive_only(x, torch.where(x <= 5, near, _waves1(x.clamp_min(5.0))[1]), -torch.inf)


def _spherical_j0(x: Tensor) -> Tensor:
    z = x * x
    near = polynomial(z, (1 / 6227020800, -1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0))
    return torch.where(x.isinf(), 0.0, torch.where(x.abs() < 0.5, near, x.sin() / x))


def _airy(x: Tensor) -> Tensor:
    """Return Ai: waves far below zero, a power series in the middle, a quotient far above."""
    root = x.abs().sqrt()
    zeta = 2 * x.abs() * root / 3
    inverse = 1 / zeta
    square = inverse * inverse
    f = 1 + square * polynomial(square, cephes.AIRY_AFN) / polynomial(square, cephes.AIRY_AFD)
    g = inverse * polynomial(square, cephes.AIRY_AGN) / polynomial(square, cephes.AIRY_AGD)
    turn = zeta + math.pi / 4
    below = (turn.sin() * f - turn.cos() * g) / math.sqrt(math.pi) / root.sqrt()
    above = polynomial(inverse, cephes.AIRY_AN) / polynomial(inverse, cephes.AIRY_AD)
    above = above / math.sqrt(math.pi) / (2 * root.sqrt() * zeta.exp())
    cube = x * x * x

    def step(k: Tensor, f: Tensor, g: Tensor, m: Tensor, n: Tensor, cube: Tensor) -> list[Tensor]:
        base = 3 * k.to(torch.float64)
        m = m * cube / ((base + 2) * (base + 3))
        n = n * cube / ((base + 3) * (base + 4))
        return [f + m, g + n, m, n, cube]

    safe = torch.where((x > -2.09) & (x < 2.09), cube, torch.zeros_like(cube))
    f, g, _, _, _ = repeat(24, [torch.ones_like(x), x, torch.ones_like(x), x, safe], step)
    middle = 0.355028053887817239260 * f - 0.258819403792806798405 * g
    return torch.where(x < -2.09, below, torch.where(x >= 2.09, torch.where(x > 103.892, 0.0, above), middle))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.i0.default: in_double(_i0),
    aten.special_i0e.default: in_double(_scaled_i0),
    aten.special_i1.default: in_double(_i1),
    aten.special_i1e.default: in_double(_scaled_i1),
    aten.special_modified_bessel_i0.default: in_double(_i0),
    aten.special_modified_bessel_i1.default: in_double(_i1),
    aten.special_modified_bessel_k0.default: in_double(lambda x: _k0(x, False)),
    aten.special_modified_bessel_k1.default: in_double(lambda x: _k1(x, False)),
    aten.special_scaled_modified_bessel_k0.default: in_double(lambda x: _k0(x, True)),
    aten.special_scaled_modified_bessel_k1.default: in_double(lambda x: _k1(x, True)),
    aten.special_bessel_j0.default: in_double(_j0),
    aten.special_bessel_j1.default: in_double(_j1),
    aten.special_bessel_y0.default: in_double(_y0),
    aten.special_bessel_y1.default: in_double(_y1),
    aten.special_spherical_bessel_j0.default: in_double(_spherical_j0),
    aten.special_airy_ai.default: in_double(_airy),
}
