"""Torch's own kernels held against the arithmetic: where one gives other numbers for the same integers, that is noted.

Without VNNI these kernels add pairs of products in 16 bits and cut the sum off there, so that eager itself is wrong where large
activations meet large weights. A kernel is said to do so only where it is right for the same call with half the weights, of
which no pair takes activations beyond 16 bits: that shows the arithmetic to be its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from torchferry.foreign.torch_tensors import quantised_tensor, quantised_tensor_by_channel
from torchferry.quantised.grid import Quantised
from torchferry.quantised.operators import OPERATORS, name_of, product
from torchferry.quantised.unpacked import repacked, unpack
from torchferry.saturation.product import pairs_cut_off

PRODUCTS = ("linear", "conv", "quantized_lstm", "quantized_gru", "quantized_rnn")
ROUNDING = 1e-4  # of the largest number: sums in another order; a pair that is cut off takes away far more


@dataclass(frozen=True, slots=True)
class CutOff:
    """A kernel that gave other numbers than the arithmetic: by how much at worst, in steps of what it gives or plain numbers."""

    op: str
    off: float


class Audited(TorchFunctionMode):
    """While this is active, products of quantised tensors are what the arithmetic says where the kernel cuts sums off."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[CutOff] = []
        self._held = nn.Module()  # the buffers of what is unpacked
        self._packed: dict[int, Any] = {}

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, quantised = name_of(func)
        named = kwargs or {}
        given = func(*args, **named)
        if not quantised or name not in OPERATORS or not name.startswith(PRODUCTS) or "fp16" in name:
            return given
        right = self._right(name, args, named, given)
        if (off := _apart(given, right)) == 0:
            return given
        lighter = _lighter(args)
        again = func(*lighter, **named)
        if _apart(again, self._right(name, lighter, named, again)) > 0:
            return given  # it differs there too: this is something else than a sum that is cut off
        self.found.append(CutOff(f"quantized::{name}", off))
        return right

    def _right(self, name: str, args: Any, named: Any, like: Any) -> Any:
        return _closed(OPERATORS[name](*(self._opened(a) for a in args), **named), like)

    def _opened(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._opened(v) for v in value)
        if isinstance(value, torch.ScriptObject):
            if id(value) not in self._packed:
                self._packed[id(value)] = (unpack(self._held, f"packed{len(self._packed)}", value), value)
            return self._packed[id(value)][0]
        return opened(value)


class SixteenBits(TorchFunctionMode):
    """While this is active, quantised linear layers are computed as without VNNI: for examples and tests where there is one."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, quantised = name_of(func)
        given = func(*args, **(kwargs or {}))
        if not quantised or name != "linear":
            return given
        x, packed = opened(args[0]), unpack(nn.Module(), "packed", args[1])

        def cut_off(whole: Tensor, weight: Tensor) -> Tensor:
            stored = (whole + x.zero_point).reshape(-1, whole.shape[-1])
            found = torch.from_numpy(pairs_cut_off(stored.numpy(), weight.T.numpy())).to(torch.float32)
            return (found - x.zero_point * weight.sum(1)).reshape(*whole.shape[:-1], -1)

        return _closed(product(x, packed, cut_off, (args[2], args[3]), False), given)  # type: ignore[arg-type]


def opened(value: Any) -> Any:
    """Return a quantised tensor as the stand-in that the arithmetic takes; anything else as it is."""
    if not isinstance(value, Tensor) or not value.is_quantized:
        return value
    scale, zero_point = value.q_scale(), value.q_zero_point()
    return Quantised(value.int_repr().to(torch.float32) - zero_point, scale, zero_point, value.dtype)


def _closed(value: Any, like: Any) -> Any:
    """Return what the arithmetic gave in the form in which the kernel gives it."""
    if isinstance(value, list | tuple):
        return type(like)(_closed(v, k) for v, k in zip(value, like, strict=True))
    if not isinstance(value, Quantised):
        return value
    return quantised_tensor(value.int_repr(), like.q_scale(), like.q_zero_point())


def _apart(given: Any, right: Any) -> float:
    """Return how far two results are apart; nothing where rounding may be all: a step of a grid, the last digits of a float."""
    if isinstance(given, list | tuple):
        return max(_apart(g, r) for g, r in zip(given, right, strict=True))
    if given.is_quantized:
        steps = (given.int_repr().int() - right.int_repr().int()).abs().max() if given.numel() else torch.tensor(0)
        return float(steps) if steps > 1 else 0.0
    gap = (given - right).abs().nan_to_num(0.0)
    far = float(gap.max()) if gap.numel() else 0.0
    unlike = bool((given.isnan() != right.isnan()).any())
    return far if far > ROUNDING * float(right.abs().nan_to_num(0.0).max()) or unlike else 0.0


def _lighter(value: Any) -> Any:
    """Return an argument, or several, with half the weights in whatever is packed: none is beyond 64 then."""
    if isinstance(value, list | tuple):
        return type(value)(_lighter(v) for v in value)
    return repacked(value, _halved) if isinstance(value, torch.ScriptObject) else value


def _halved(weight: Tensor) -> Tensor:
    whole = torch.div(weight.int_repr(), 2, rounding_mode="trunc")
    if weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return quantised_tensor(whole, weight.q_scale(), weight.q_zero_point())
    scales, zero_points, axis = weight.q_per_channel_scales(), weight.q_per_channel_zero_points(), weight.q_per_channel_axis()
    return quantised_tensor_by_channel(whole, scales, zero_points, axis)
