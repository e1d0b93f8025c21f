"""float64 where onnxruntime has no kernel for it, or torch.onnx rounds an operator's numbers to float32.

These decompositions hold for float64 alone. torch's own are taken where it has one; angles and hyperbolic functions are
computed as Cephes does, to about 1e-15. Convolutions stay as they are: a diagnosis offers to compute them in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.foreign.torch_tracing import decompositions_of
from torchferry.ops.decomposed import cephes
from torchferry.ops.decomposed.special import polynomial

STEEP, HALF_STEEP = math.tan(3 * math.pi / 8), 0.66  # where the angle is turned by 90 and by 45 degrees


def _negative(x: Tensor) -> Tensor:
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0))


def atan(x: Tensor) -> Tensor:
    """Return the angle of a slope."""
    size = x.abs()
    steep, half = size > STEEP, size > HALF_STEEP
    start = torch.where(steep, math.pi / 2, torch.where(half, math.pi / 4, torch.zeros_like(size)))
    y = torch.where(steep, -1 / size, torch.where(half, (size - 1) / (size + 1), size))
    square = y * y
    angle = start + (y + y * square * polynomial(square, cephes.ATAN_P) / polynomial(square, cephes.ATAN_Q))
    return torch.where(_negative(x), -angle, angle)


def atan2(self: Tensor, other: Tensor) -> Tensor:
    """Return the angle of a point, in the right quadrant; zeros keep their signs."""
    self, other = (v if v.is_floating_point() else v.to(torch.get_default_dtype()) for v in (self, other))
    y, x = self.abs(), other.abs()
    alike = (y == x) & ((y == 0) | y.isinf())
    slope = torch.where(alike, torch.where(y == 0, y, torch.ones_like(y)), y / x)
    angle = torch.atan(slope)
    angle = torch.where(_negative(other), math.pi - angle, angle)
    return torch.where(_negative(self), -angle, angle)


def asin(x: Tensor) -> Tensor:
    """Return the angle of a sine."""
    return atan(x / ((1 - x) * (1 + x)).sqrt())


def acos(x: Tensor) -> Tensor:
    """Return the angle of a cosine."""
    return 2 * atan(((1 - x) / (1 + x)).sqrt())


def sinh(x: Tensor) -> Tensor:
    """Return the hyperbolic sine."""
    half = (x.abs() / 2).exp()
    grown = torch.expm1(x.abs())
    small = (grown + grown / (grown + 1)) / 2
    value = torch.where(x.abs() < 1, small, half * half / 2 - torch.exp(-x.abs()) / 2)
    return torch.where(_negative(x), -value, value)


def cosh(x: Tensor) -> Tensor:
    """Return the hyperbolic cosine; the exponential is halved before it overflows."""
    half = (x.abs() / 2).exp()
    return half / 2 * half + torch.exp(-x.abs()) / 2


def tan(x: Tensor) -> Tensor:
    """Return the tangent."""
    return x.sin() / x.cos()


def asinh(x: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic sine."""
    size = x.abs()
    square = size * size
    small = torch.log1p(size + square / (1 + (square + 1).sqrt()))
    value = torch.where(size > 1e150, size.log() + math.log(2.0), small)
    return torch.where(_negative(x), -value, value)


def acosh(x: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic cosine."""
    above = x - 1
    return torch.where(x > 1e150, x.log() + math.log(2.0), torch.log1p(above + (above * (x + 1)).sqrt()))


def atanh(x: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic tangent."""
    return torch.log1p(2 * x / (1 - x)) / 2


def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Return log(1 + exp(beta x)) / beta; beyond the threshold, x."""
    scaled = self * beta
    return torch.where(scaled > threshold, self, torch.log1p(scaled.exp()) / beta)


def log_sigmoid(self: Tensor) -> Tensor:
    """Return log(sigmoid(x))."""
    return self.clamp_max(0) - torch.log1p((-self.abs()).exp())


def add(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    """Return a sum with a factor; without one it is left as it is."""
    return NotImplemented if alpha == 1 else self + other * alpha


def sub(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    """Return a difference with a factor; without one it is left as it is."""
    return NotImplemented if alpha == 1 else self - other * alpha


def power_of(self: Any, exponent: Tensor) -> Tensor:
    """Return a number to the power of a tensor."""
    return torch.full_like(exponent, self).pow(exponent)


def power(self: Tensor, exponent: Any) -> Tensor:
    """Return a tensor to the power of a number; whole ones are left as they are."""
    if float(exponent).is_integer() or float(exponent) == 0.5:
        return NotImplemented
    return self.pow(torch.full((), exponent, dtype=self.dtype))


def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return `self` with a number under the mask."""
    return torch.where(mask, torch.full((), value, dtype=self.dtype), self)


def arange(start: Any, end: Any, step: Any = 1, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Return evenly spaced numbers from numbers that are known; others are left as they are."""
    if dtype != torch.float64 or not all(isinstance(v, int | float) for v in (start, end, step)):
        return NotImplemented
    return torch.arange(math.ceil((end - start) / step)).to(dtype) * step + start


def var_mean(self: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return variance and mean: torch.onnx divides the two in one by a size in float32."""
    axes = list(range(self.dim())) if dim is None else dim
    return torch.var(self, axes, correction=1 if correction is None else correction, keepdim=keepdim), self.mean(axes, keepdim)


TORCHS_OWN = (
    *(aten.addcmul.default, aten.addcdiv.default, aten.leaky_relu.default, aten.hardtanh.default, aten.elu.default),
    *(aten.hardsigmoid.default, aten.hardswish.default, aten.gelu.default, aten.celu.default, aten.selu.default),
    *(aten.native_layer_norm.default, aten.native_group_norm.default, aten.linspace.default, aten.mish.default),
    *(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec, aten.upsample_nearest1d.default),
    *(aten.upsample_nearest2d.default, aten.upsample_nearest3d.default, aten.upsample_bilinear2d.vec),
    *(aten.upsample_bilinear2d.default, aten.upsample_bicubic2d.vec, aten.upsample_bicubic2d.default),
    *(aten.upsample_trilinear3d.vec, aten.upsample_linear1d.vec, aten.grid_sampler_2d.default),
)
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.atan2.default: atan2}  # torch.onnx's loses the sign of a zero
DOUBLES: dict[Any, Callable[..., Any]] = {
    **decompositions_of(TORCHS_OWN),
    **{target: target.decompose for target in (aten.group_norm.default, aten.layer_norm.default)},
    aten.atan.default: atan,
    aten.asin.default: asin,
    aten.acos.default: acos,
    aten.sinh.default: sinh,
    aten.cosh.default: cosh,
    aten.tan.default: tan,
    aten.asinh.default: asinh,
    aten.acosh.default: acosh,
    aten.atanh.default: atanh,
    aten.softplus.default: softplus,
    aten.log_sigmoid.default: log_sigmoid,
    aten.arange.start_step: arange,
    aten.var_mean.correction: var_mean,
    aten.add.Tensor: add,
    aten.sub.Tensor: sub,
    aten.pow.Scalar: power_of,
    aten.pow.Tensor_Scalar: power,
    aten.masked_fill.Scalar: masked_fill,
}
