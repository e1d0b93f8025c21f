"""Rounding errors made visible: eager runs with its sums and bounded functions moved as far as another kernel may move them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.verify.run.eager_trace import op_name, terms

# Kernels approximate these to a unit in the last place of their range, or of their argument, not of each result.
BOUNDED = ("sigmoid", "tanh", "erf")
GATED = ("silu", "gelu", "mish")


class Noisy(TorchDispatchMode):
    """While it is on, a sum of n numbers comes out up to the square root of n units in the last place off.

    A bounded function comes out one unit of its range off.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch would import its whole compiler to say so

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [a for a in args if isinstance(a, torch.Tensor) and not a.is_nested]
        scale = _scale(op_name(func).rstrip("_"), given)
        out = func(*args, **(kwargs or {}))
        if not isinstance(out, torch.Tensor) or out.is_nested or not out.is_floating_point():
            return out
        if scale is not None:
            moved = out + _signs(out, self._generator) * scale * torch.finfo(out.dtype).eps
        elif (many := terms(str(func), given, [out])) > 1:
            moved = _moved(out, _signs(out, self._generator), math.sqrt(many))
        else:
            return out
        return out.copy_(moved) if func._schema.is_mutable else moved


def _scale(op: str, given: list[torch.Tensor]) -> Any:
    """Return what a bounded function's error is in proportion to, read before it may overwrite its argument; None for others."""
    if op in BOUNDED:
        return 1.0
    return given[0].abs().clamp(min=1) if op in GATED and given else None


def nudge(tensor: torch.Tensor, generator: torch.Generator, size: float) -> torch.Tensor:
    """Return a tensor whose numbers are moved up or down, or left, by some units in the last place."""
    return _moved(tensor, torch.randint(-1, 2, tensor.shape, generator=generator), size)


def shaken(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return what a model is given, or returns, moved like a sum along its longest axis: single ops do not show it all."""
    return _moved(tensor, _signs(tensor, generator), math.sqrt(max(tensor.shape, default=1)))


def _signs(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return 2 * torch.randint(0, 2, like.shape, generator=generator) - 1


def _moved(tensor: torch.Tensor, signs: torch.Tensor, size: float) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    return tensor * (1 + signs.to(tensor.dtype) * size * torch.finfo(tensor.dtype).eps)
