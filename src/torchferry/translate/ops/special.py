"""Gamma, zeta and error functions. Sums and quotients run in float64, so the results are right to float32's last places.

`erfcx`, and what is built on it, is good to 1.2e-7 relative; `lgamma` and `digamma` to 1e-14 before rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from torchferry.translate.ops import cephes
from torchferry.translate.ops.loop import repeat

aten = torch.ops.aten
LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
PSI = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)  # the asymptotic series of digamma
ZETA = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)
ERFCX = (
    0.17087277,
    -0.82215223,
    1.48851587,
    -1.13520398,
    0.27886807,
    -0.18628806,
    0.09678418,
    0.37409196,
    1.00002368,
    -1.26551223,
)


def in_double(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function computed in float64, with the result in the argument's dtype (float32 for integers)."""

    @wraps(function)
    def wide(*args: Any) -> Tensor:
        first = next(a for a in args if isinstance(a, Tensor))
        dtype = first.dtype if first.is_floating_point() else torch.get_default_dtype()
        return function(*(a.to(torch.float64) if isinstance(a, Tensor) else a for a in args)).to(dtype)

    return wide


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Return the polynomial, highest power first."""
    total = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _sine_of_pi(x: Tensor) -> Tensor:
    """Return sin(pi x) from the fraction of x alone, so that large arguments lose nothing."""
    whole = x.floor()
    sign = 1 - 2 * torch.remainder(whole, 2.0)
    return sign * ((x - whole) * math.pi).sin()


def _lgamma(x: Tensor) -> Tensor:
    low = x < 0.5
    y = torch.where(low, 1 - x, x) - 1
    total = torch.full_like(y, LANCZOS[0])
    for index, coefficient in enumerate(LANCZOS[1:], start=1):
        total = total + coefficient / (y + index)
    t = y + 7.5
    value = 0.5 * math.log(2 * math.pi) + (y + 0.5) * t.log() - t + total.log()
    value = torch.where(low, math.log(math.pi) - _sine_of_pi(x).abs().log() - value, value)
    value = torch.where((x <= 0) & (x == x.floor()), torch.inf, value)
    return torch.where(x.isinf(), torch.inf, value)


def _digamma(x: Tensor) -> Tensor:
    negative = x < 0
    y = torch.where(negative, 1 - x, x)
    total = torch.zeros_like(y)
    for _ in range(10):
        small = y < 10
        total = total - torch.where(small, 1 / y, torch.zeros_like(y))
        y = torch.where(small, y + 1, y)
    z = 1 / (y * y)
    value = total + y.log() - 0.5 / y - z * polynomial(z, PSI)
    turn = (x - x.trunc()) * math.pi
    reflected = value - math.pi * turn.cos() / turn.sin()
    value = torch.where(negative, torch.where(x == x.floor(), torch.nan, reflected), value)
    return torch.where(x == 0, -torch.inf / (1 / x).sign() * torch.ones_like(x), value)


def _trigamma(x: Tensor) -> Tensor:
    low = x < 0.5
    y = torch.where(low, 1 - x, x)
    total = torch.zeros_like(y)
    for _ in range(8):
        total = total + 1 / (y * y)
        y = y + 1
    z = 1 / (y * y)
    total = total + (1 + 1 / (2 * y) + z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z / 30)))) / y
    sine = _sine_of_pi(x)
    return torch.where(low, math.pi**2 / (sine * sine) - total, total)


def _zeta(x: Tensor, q: Tensor) -> Tensor:
    """Return the Hurwitz zeta function by Euler-Maclaurin: terms until the argument passes 9, then the tail."""
    x, q = torch.broadcast_tensors(x, q)

    def step(k: Tensor, total: Tensor, a: Tensor, last: Tensor, x: Tensor) -> list[Tensor]:
        more = (k < 9) | (a <= 9)
        following = torch.where(more, a + 1, a)
        term = following.pow(-x)
        return [torch.where(more, total + term, total), following, torch.where(more, term, last), x]

    total, w, b, _ = repeat(48, [q.pow(-x), q, torch.zeros_like(x), x], step)
    total = total + b * w / (x - 1) - 0.5 * b
    a, k = torch.ones_like(x), 0
    for coefficient in ZETA:
        a = a * (x + k)
        b = b / w
        total = total + a * b / coefficient
        a = a * (x + k + 1)
        b, k = b / w, k + 2
    total = torch.where((q <= 0) & (x != x.floor()), torch.nan, total)
    total = torch.where((q <= 0) & (q == q.floor()), torch.inf, total)
    return torch.where(x == 1, torch.inf, torch.where(x < 1, torch.nan, total))


def polygamma(n: int, self: Tensor) -> Tensor:
    """Return the n-th derivative of digamma."""
    if n == 0:
        return in_double(_digamma)(self)
    if n == 1:
        return in_double(_trigamma)(self)
    factor = (1.0 if n % 2 else -1.0) * math.factorial(n)
    return in_double(lambda x: factor * _zeta(torch.full_like(x, float(n + 1)), x))(self)


def mvlgamma(self: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function."""

    def function(x: Tensor) -> Tensor:
        total = torch.full_like(x, p * (p - 1) / 4 * math.log(math.pi))
        for index in range(p):
            total = total + _lgamma(x - index / 2)
        return total

    return in_double(function)(self)


def _igamma(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularised lower incomplete gamma function: its series, or one minus the continued fraction."""
    a, x = torch.broadcast_tensors(a, x)
    scale = (a * x.log() - x - _lgamma(a)).exp()

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
    total, _, _, _, _, h, _, _ = repeat(256, state, step)
    value = torch.where(x < a + 1, total * scale, 1 - h * scale)
    value = torch.where((x == 0) | a.isinf(), torch.zeros_like(x), value)
    value = torch.where((a == 0) | x.isinf(), torch.ones_like(x), value)
    bad = (x < 0) | (a < 0) | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
    return torch.where(bad, torch.nan, value)


def _igammac(a: Tensor, x: Tensor) -> Tensor:
    return 1 - _igamma(a, x)


def _erfcx(x: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x)."""
    size = x.abs()
    t = 1 / (1 + 0.5 * size)
    value = t * polynomial(t, ERFCX).exp()
    return torch.where(x < 0, 2 * (x * x).exp() - value, value)


def _erfc(x: Tensor) -> Tensor:
    """Return erfc with its tail, which one minus erf would lose."""
    size = x.abs()
    t = 1 / (1 + 0.5 * size)
    tail = t * (polynomial(t, ERFCX) - size * size).exp()
    return torch.where(x < 0, 2 - tail, tail)


def _log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    return torch.where(x < -1, (_erfcx(-t) / 2).log() - t * t, (-_erfc(t) / 2 + 1).log())


def erfinv(self: Tensor) -> Tensor:
    """Return the inverse of erf: torch's own rational start and two steps of Newton's method."""
    y = self if self.is_floating_point() else self.to(torch.get_default_dtype())
    size = y.abs()
    z = y * y
    middle = y * polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899))
    middle = middle / polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    z = (-((1 - size) / 2).log()).sqrt()
    outer = polynomial(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454)) / polynomial(z, (1.6370678, 3.5438892, 1.0))
    x = torch.where(size <= 0.7, middle, torch.where(y < 0, -outer, outer))
    for _ in range(2):
        x = x - (x.erf() - y) / ((2 / math.sqrt(math.pi)) * (-x * x).exp())
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


def zeta_scalar(self: Any, other: Tensor) -> Tensor:
    """Return zeta for a number and a tensor."""
    return in_double(lambda q: _zeta(torch.full_like(q, float(self)), q))(other)


def zeta_other_scalar(self: Tensor, other: Any) -> Tensor:
    """Return zeta for a tensor and a number."""
    return in_double(lambda x: _zeta(x, torch.full_like(x, float(other))))(self)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.lgamma.default: in_double(_lgamma),
    aten.digamma.default: in_double(_digamma),
    aten.polygamma.default: polygamma,
    aten.mvlgamma.default: mvlgamma,
    aten.igamma.default: in_double(_igamma),
    aten.igammac.default: in_double(_igammac),
    aten.special_zeta.default: in_double(_zeta),
    aten.special_zeta.self_scalar: zeta_scalar,
    aten.special_zeta.other_scalar: zeta_other_scalar,
    aten.special_erfcx.default: in_double(_erfcx),
    aten.erfc.default: in_double(_erfc),
    aten.special_log_ndtr.default: in_double(_log_ndtr),
    aten.erfinv.default: erfinv,
    aten.special_ndtri.default: in_double(_ndtri),
}
