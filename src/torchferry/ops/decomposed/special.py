"""Gamma and zeta functions. Sums and quotients run in float64, so the results are right to float32's last places.

`lgamma` and `digamma` are good to 1e-14 before rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.loop import repeat

LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
PSI = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)  # the asymptotic series of digamma
ZETA = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
    1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip


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


def lgamma(x: Tensor) -> Tensor:
    """Return the logarithm of the gamma function, by Lanczos' approximation."""
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


def _trigamma(x: Tensor, turn: Tensor) -> Tensor:
    """Return the derivative of digamma; `turn` is pi x as the argument's dtype rounds it, by which torch reflects."""
    low = x < 0.5
    y = torch.where(low, 1 - x, x)
    total = torch.zeros_like(y)
    for _ in range(8):
        total = total + 1 / (y * y)
        y = y + 1
    z = 1 / (y * y)
    total = total + (1 + 1 / (2 * y) + z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z / 30)))) / y
    return torch.where(low, math.pi**2 / turn.sin().square() - total, total)


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
        x = self if self.is_floating_point() else self.to(torch.get_default_dtype())
        return in_double(_trigamma)(x, x * math.pi)
    factor = (1.0 if n % 2 else -1.0) * math.factorial(n)
    return in_double(lambda x: factor * _zeta(torch.full_like(x, float(n + 1)), x))(self)


def mvlgamma(self: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function."""

    def function(x: Tensor) -> Tensor:
        total = torch.full_like(x, p * (p - 1) / 4 * math.log(math.pi))
        for index in range(p):
            total = total + lgamma(x - index / 2)
        return total

    return in_double(function)(self)


def zeta_scalar(self: Any, other: Tensor) -> Tensor:
    """Return zeta for a number and a tensor."""
    return in_double(lambda q: _zeta(torch.full_like(q, float(self)), q))(other)


def zeta_other_scalar(self: Tensor, other: Any) -> Tensor:
    """Return zeta for a tensor and a number."""
    return in_double(lambda x: _zeta(x, torch.full_like(x, float(other))))(self)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.lgamma.default: in_double(lgamma),
    aten.digamma.default: in_double(_digamma),
    aten.polygamma.default: polygamma,
    aten.mvlgamma.default: mvlgamma,
    aten.special_zeta.default: in_double(_zeta),
    aten.special_zeta.self_scalar: zeta_scalar,
    aten.special_zeta.other_scalar: zeta_other_scalar,
}
