"""Elementwise operators that torch.onnx lacks: signs and NaNs as torch has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.foreign.torch_shapes import example_of
from torchferry.foreign.torch_tracing import decompositions_of


def signed(x: Tensor) -> Tensor:
    """Whether the sign bit is set, -0.0 included: its reciprocal is negative."""
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0)) if x.is_floating_point() else x < 0


def _size(x: Tensor) -> Tensor:
    return (x if x.is_floating_point() else x.to(torch.get_default_dtype())).abs()


def copysign(self: Tensor, other: Tensor) -> Tensor:
    """Return the size of one with the sign of the other."""
    size = _size(self)
    return torch.where(signed(other), -size, size)


def copysign_scalar(self: Tensor, other: float) -> Tensor:
    """Return the size of a tensor with the sign of a number."""
    size = _size(self)
    return -size if str(float(other)).startswith("-") else size.clone()


def _alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.result_type(a, b)
    return a.to(dtype), b.to(dtype)


def fmax(self: Tensor, other: Tensor) -> Tensor:
    """Return the larger; a NaN loses against a number."""
    return _outermost(self, other, torch.maximum, torch.ge)


def fmin(self: Tensor, other: Tensor) -> Tensor:
    """Return the smaller; a NaN loses against a number."""
    return _outermost(self, other, torch.minimum, torch.le)


def _outermost(self: Tensor, other: Tensor, of_whole: Callable[..., Tensor], beats: Callable[..., Tensor]) -> Tensor:
    if not (self.is_floating_point() or other.is_floating_point()):
        return of_whole(self, other)
    self, other = _alike(self, other)
    return torch.where(self.isnan() | beats(other, self), torch.where(other.isnan(), self, other), self)


def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    """Return mantissa in [0.5, 1) and exponent: the logarithm's guess, put right by exact halvings."""
    size = self.abs()
    odd = (size == 0) | size.isinf() | size.isnan()
    tiny = size < 1e-30
    scaled = torch.where(tiny, size * 2.0**64, size)
    safe = torch.where(odd, 1.0, scaled)
    guess = safe.log2().floor() + 1
    half = (guess * 0.5).floor()
    mantissa = safe * torch.exp2(-half) * torch.exp2(half - guess)
    up, down = mantissa >= 1, mantissa < 0.5
    mantissa = torch.where(up, mantissa * 0.5, torch.where(down, mantissa * 2, mantissa))
    exponent = guess + up.to(self.dtype) - down.to(self.dtype) - torch.where(tiny, 64.0, 0.0).to(self.dtype)
    mantissa = torch.where(self < 0, -mantissa, mantissa)
    return torch.where(odd, self, mantissa), torch.where(odd, 0.0, exponent).to(torch.int32)


def heaviside(self: Tensor, values: Tensor) -> Tensor:
    """Return 0, `values` or 1 by the sign; for NaN 0, as it is not greater."""
    return torch.where(self == 0, values, (self > 0).to(self.dtype))


def nextafter(self: Tensor, other: Tensor) -> Tensor:
    """Return the neighbour of a number in a direction, by adding half a unit in its last place."""
    tiny = torch.finfo(self.dtype).smallest_normal * torch.finfo(self.dtype).eps  # the smallest denormal
    mantissa, exponent = frexp(self)
    digits = {torch.float32: 24, torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}[self.dtype]
    lowest = {torch.float32: -149, torch.float64: -1074, torch.float16: -24, torch.bfloat16: -133}[self.dtype]
    up = other > self
    power_of_two = mantissa.abs() == 0.5
    inward = power_of_two & (up == (self < 0)) & (self != 0)
    unit = (exponent - digits - inward.to(torch.int32)).clamp_min(lowest).to(self.dtype)
    half = (unit * 0.5).floor()
    step = torch.exp2(half) * torch.exp2(unit - half)
    sign = torch.where(up, 1.0, -1.0).to(self.dtype)
    moved = torch.where(self == 0, sign * tiny, self + sign * step)
    moved = torch.where(self.isinf(), -sign * torch.finfo(self.dtype).max, moved)
    result = torch.where(other == self, other, moved)
    return torch.where(self.isnan() | other.isnan(), torch.nan, result)


def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest."""
    axes = list(range(self.dim())) if dim is None else [dim]
    if self.dim() == 0:
        shape = [1] * 0
        return self.reshape(shape).clone(), self.reshape(shape).clone()
    return self.amin(axes, keepdim), self.amax(axes, keepdim)


def expm1(self: Any) -> Any:
    """Return exp(x) - 1 without losing what is small: the error of the exponential is that of its logarithm."""
    x = op.Cast(self, to=ir.DataType.FLOAT) if self.dtype is not None and self.dtype.is_integer() else self
    one = op.CastLike(op.Constant(value_float=1.0), x)
    grown = op.Exp(x)
    plain = op.Sub(grown, one)
    exact = op.Where(op.Equal(grown, one), x, op.Div(op.Mul(plain, x), op.Log(grown)))
    return op.Where(op.Less(op.Abs(x), one), exact, plain)


def log1p(self: Any) -> Any:
    """Return log(1 + x) without losing what is small."""
    x = op.Cast(self, to=ir.DataType.FLOAT) if self.dtype is not None and self.dtype.is_integer() else self
    one = op.CastLike(op.Constant(value_float=1.0), x)
    more = op.Add(x, one)
    plain = op.Log(more)
    exact = op.Where(op.Equal(more, one), x, op.Div(op.Mul(plain, x), op.Sub(more, one)))
    return op.Where(op.Less(op.Abs(x), one), exact, plain)


def log_sigmoid(self: Any) -> Any:
    """Return log(sigmoid(x)) without computing the sigmoid, which is 0 long before its logarithm is -inf."""
    return op.Neg(op.Softplus(op.Neg(self)))


def sign(self: Any) -> Any:
    """Return -1, 0 or 1; of a NaN, 0 as torch has it."""
    if self.dtype is None or not self.dtype.is_floating_point():
        return op.Sign(self)
    return op.Where(op.IsNaN(self), op.CastLike(op.Constant(value_float=0.0), self), op.Sign(self))


def reduce_or_all(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Return amax or amin, over all axes where none is named."""

    def function(self: Any, dim: Any = (), keepdim: bool = False) -> Any:
        if len(self.shape) == 0:
            return op.Identity(self)
        small = self.dtype in (ir.DataType.BOOL, ir.DataType.INT16, ir.DataType.UINT8)
        x = op.Cast(self, to=ir.DataType.INT32) if small else self
        axes = [dim] if isinstance(dim, int) else [int(d) for d in dim]
        result = reduce(x, op.Constant(value_ints=axes), keepdims=int(keepdim)) if axes else reduce(x, keepdims=int(keepdim))
        return op.Cast(result, to=self.dtype) if small else result

    return function


def prod(self: Any, dim: int, keepdim: bool = False, *, dtype: int = -1) -> Any:
    """Return the product along an axis; of a single number, that number."""
    whole = self.dtype is not None and (self.dtype.is_integer() or self.dtype == ir.DataType.BOOL)
    wanted = ir.DataType(dtype) if dtype != -1 else ir.DataType.INT64 if whole else None
    x = self if wanted is None or wanted == self.dtype else op.Cast(self, to=wanted)
    if len(self.shape) == 0:
        return op.Identity(x)
    return op.ReduceProd(x, op.Constant(value_ints=[dim]), keepdims=int(keepdim))


def rrelu(
    self: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> tuple[Tensor, Tensor]:
    """Return a leaky relu with the middle of the slopes; slopes that are drawn in training are left as they are."""
    if training:
        return NotImplemented
    return torch.nn.functional.leaky_relu(self, (lower + upper) / 2), noise.clone()


def squeeze_dims(self: Tensor, dim: Any) -> Tensor:
    """Return the tensor without those of the named axes that are 1."""
    x = self
    for axis in sorted((d % max(self.dim(), 1) for d in dim), reverse=True):
        x = x.squeeze(axis) if self.dim() else x
    return x.clone() if x is self else x


def squeeze_dim(self: Tensor, dim: int) -> Any:
    """Return the tensor as it is where the named axis is not 1: ONNX would refuse, and torch.onnx does not ask."""
    size: Any = self.shape[dim] if self.dim() else 1  # a computed size that nobody knows may be 1
    return NotImplemented if example_of(size) in (1, None) else self.clone()


TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.log_sigmoid.default: log_sigmoid,
    aten.sign.default: sign,
    aten.sgn.default: sign,
    aten.prod.dim_int: prod,
    aten.amax.default: reduce_or_all(op.ReduceMax),
    aten.amin.default: reduce_or_all(op.ReduceMin),
}


def floored(self: Tensor, other: Any, *, rounding_mode: str | None = "floor") -> Tensor:
    """Return the floor of the quotient as torch has it, by way of the remainder: the quotient itself may be rounded up.

    An integer has no such trouble, nor has division by a power of two.
    """
    dtype = torch.result_type(self, other)
    halves = isinstance(other, int | float) and abs(math.frexp(other)[0]) == 0.5
    if rounding_mode != "floor" or not dtype.is_floating_point or halves:
        return NotImplemented
    other = other if isinstance(other, Tensor) else torch.scalar_tensor(other, dtype=dtype)
    rest = torch.fmod(self, other)
    quotient = (self - rest) / other
    quotient = torch.where((rest != 0) & ((rest < 0) != (other < 0)), quotient - 1, quotient)
    whole_part = quotient.floor()
    nearest = torch.where(quotient - whole_part > 0.5, whole_part + 1, whole_part)
    plain = self / other
    return torch.where(other == 0, plain, torch.where(quotient == 0, copysign(torch.zeros_like(plain), plain), nearest))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.copysign.Tensor: copysign,
    aten.copysign.Scalar: copysign_scalar,
    aten.div.Tensor_mode: floored,
    aten.div.Scalar_mode: floored,
    aten.floor_divide.default: floored,
    aten.floor_divide.Scalar: floored,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.frexp.Tensor: frexp,
    aten.heaviside.default: heaviside,
    **decompositions_of((aten.logaddexp.default, aten.logaddexp2.default)),
    aten.nextafter.default: nextafter,
    aten.aminmax.default: aminmax,
    aten._is_all_true.default: torch.all,  # what torch._check_tensor_all asks of a tensor
    aten._is_any_true.default: torch.any,
    aten.squeeze.dim: squeeze_dim,
    aten.signbit.default: signed,
    aten.squeeze.dims: squeeze_dims,
    aten.rrelu_with_noise_functional.default: rrelu,
}
