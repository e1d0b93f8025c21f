"""A stand-in for a quantised tensor: its integers less the zero point, held in floats, and the grid they stand on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.quantised.arithmetic import RANGES, as_float, requantised, stored

# what scales with its input can be computed on the whole numbers: their means have exact halves, those of floats have not
_SCALES_ALONG = ("avg_pool", "mean", "interpolate", "upsample", "max_pool", "relu", "flatten", "reshape", "view", "permute")


class Quantised:
    """What a model passes around between quantised operators."""

    def __init__(self, whole: Tensor, scale: Any, zero_point: Any, dtype: torch.dtype) -> None:
        self.whole, self.dtype = whole, dtype
        self.scale, self.zero_point = as_float(scale), as_float(zero_point)
        self.is_quantized = True

    @classmethod
    def of(cls, value: Tensor, scale: Any, zero_point: Any, dtype: torch.dtype = torch.quint8) -> Quantised:
        """Return floats as `quantize_per_tensor` takes them in."""
        return cls(stored(value * (1.0 / as_float(scale)), as_float(zero_point), dtype), scale, zero_point, dtype)

    @classmethod
    def computed(cls, value: Tensor, scale: Any, zero_point: Any, dtype: torch.dtype = torch.quint8) -> Quantised:
        """Return the result of an operator on the grid that was chosen for it."""
        return cls(requantised(value * (1.0 / as_float(scale)), as_float(zero_point), dtype), scale, zero_point, dtype)

    @property
    def value(self) -> Tensor:
        """The numbers that the integers stand for."""
        return self.whole * self.scale

    def like(self, value: Tensor) -> Quantised:
        """Return other values on the same grid."""
        return Quantised.of(value, self.scale, self.zero_point, self.dtype)

    def dequantize(self) -> Tensor:
        """Return the values as a plain tensor."""
        return self.value

    def int_repr(self) -> Tensor:
        """Return the stored integers."""
        return (self.whole + self.zero_point).to(torch.uint8 if RANGES[self.dtype][0] == 0 else torch.int8)

    def q_scale(self) -> Tensor:
        """Return the scale."""
        return self.scale

    def q_zero_point(self) -> Tensor:
        """Return the zero point."""
        return self.zero_point

    def __getattr__(self, name: str) -> Any:
        found = getattr(torch.Tensor, name)
        if not callable(found):
            return getattr(self.whole, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            return on_grid(name, found, (self, *args), kwargs)

        return method

    def __getitem__(self, index: Any) -> Quantised:
        return Quantised(self.whole[index], self.scale, self.zero_point, self.dtype)

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return on_grid(str(getattr(func, "__name__", "")), func, args, kwargs or {})


def on_grid(name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a plain function gives for quantised tensors: computed in floats, put back on the first one's grid."""
    first: Quantised = next(a for a in (*_flat(args), *kwargs.values()) if isinstance(a, Quantised))
    along = any(word in name for word in _SCALES_ALONG)
    result = func(*(_plain(a, along) for a in args), **{k: _plain(v, along) for k, v in kwargs.items()})
    if not (isinstance(result, Tensor) and result.is_floating_point()):
        return result
    if along:
        return Quantised(stored(result, first.zero_point, first.dtype, name), first.scale, first.zero_point, first.dtype)
    return first.like(result)


def _flat(args: Any) -> Any:
    return [b for a in args for b in (a if isinstance(a, list | tuple) else (a,))]


def _plain(value: Any, whole: bool) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_plain(v, whole) for v in value)
    if isinstance(value, Quantised):
        return value.whole if whole else value.value
    return value
