"""Operators on integers and booleans that ONNX has for floats only; these decompositions hold for whole numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.foreign.torch_tracing import decompositions_of
from torchferry.ops.decomposed.loop import repeat

STEPS = {torch.int64: 91, torch.int32: 46, torch.int16: 23, torch.int8: 12, torch.uint8: 13}  # of Euclid's algorithm, at most


def same(self: Tensor, **_: Any) -> Tensor:
    """Return the numbers as they are: they have no fraction."""
    return self.clone()


def never(self: Tensor) -> Tensor:
    """Return False everywhere: no whole number is infinite or not a number."""
    return torch.zeros_like(self, dtype=torch.bool)


def always(self: Tensor) -> Tensor:
    """Return True everywhere."""
    return torch.ones_like(self, dtype=torch.bool)


def relu(self: Tensor) -> Tensor:
    """Return what is above zero."""
    return self.clamp_min(0)


def angle(self: Tensor) -> Tensor:
    """Return pi for negative numbers."""
    return torch.where(self < 0, torch.pi, 0.0)


def softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return the softmax in the dtype that was asked for."""
    return aten.softmax.int(self.to(dtype or torch.get_default_dtype()), dim)  # type: ignore[no-any-return]


def log_softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return the logarithm of the softmax in the dtype that was asked for."""
    return aten.log_softmax.int(self.to(dtype or torch.get_default_dtype()), dim)  # type: ignore[no-any-return]


def nansum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Return the sum."""
    axes = list(range(self.dim())) if dim is None else dim
    return self.sum(axes, keepdim, dtype=dtype)


def gcd(self: Tensor, other: Tensor) -> Tensor:
    """Return the greatest common divisor by Euclid's algorithm, in as many steps as the longest takes."""
    a, b = torch.broadcast_tensors(self.abs(), other.abs())

    def step(k: Tensor, a: Tensor, b: Tensor) -> list[Tensor]:
        safe = torch.where(b == 0, torch.ones_like(b), b)
        return [torch.where(b == 0, a, b), torch.where(b == 0, b, torch.remainder(a, safe))]

    return repeat(STEPS[self.dtype], [a, b], step)[0]


def lcm(self: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple."""
    divisor = gcd(self, other)
    safe = torch.where(divisor == 0, torch.ones_like(divisor), divisor)
    return (torch.div(self, safe, rounding_mode="trunc") * other).abs()


def in_int32(target: Any) -> Callable[..., Tensor]:
    """Return a shift of bytes and short integers computed in int32: torch.onnx's own takes unsigned ones for signed."""

    def function(*args: Any) -> Tensor:
        given = [arg for arg in args if isinstance(arg, Tensor)]
        if given[0].dtype not in (torch.uint8, torch.int16):
            return NotImplemented
        wide = [arg.to(torch.int32) if isinstance(arg, Tensor) else arg for arg in args]
        return target(*wide).to(given[0].dtype)  # type: ignore[no-any-return]

    return function


SHIFTS = [
    *(aten.__lshift__.Scalar, aten.__lshift__.Tensor, aten.__rshift__.Scalar, aten.__rshift__.Tensor),
    *(getattr(aten.bitwise_left_shift, kind) for kind in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
    *(getattr(aten.bitwise_right_shift, kind) for kind in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
]
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {target: in_int32(target) for target in SHIFTS}
WHOLES: dict[Any, Callable[..., Any]] = {
    aten.floor.default: same,
    aten.ceil.default: same,
    aten.round.default: same,
    aten.trunc.default: same,
    aten.isnan.default: never,
    aten.isinf.default: never,
    aten.isfinite.default: always,
    aten.relu.default: relu,
    aten.angle.default: angle,
    aten.softmax.int: softmax,
    aten.log_softmax.int: log_softmax,
    aten.nansum.default: nansum,
    aten.gcd.default: gcd,
    aten.lcm.default: lcm,
    **decompositions_of((aten.pixel_shuffle.default,)),
}
