"""Rounding errors made visible: eager runs with its sums and bounded functions moved as far as another kernel may move them."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.foreign.torch_operators import is_mutable
from torchferry.verify.arrays import Array, arrays
from torchferry.verify.run.eager_trace import BOUNDED, EXACT, PRODUCTS, op_name, terms
from torchferry.verify.run.sums_in_turn import PLAIN, in_turn, moved_by_its_mean

# Kernels approximate these to a unit in the last place of their argument, not of each result.
OF_ARGUMENT = ("norm", "sin", "cos", "tan", "exp", "pow", "cdist", "lstm", "gru", "rnn", "fft", "linalg_", "cholesky", "solve")
FUSED = ("addcmul", "addcdiv")  # a product and a sum, which one kernel rounds once and another twice
RECURRENT = ("lstm", "gru", "rnn")  # made of gates
GATED = ("silu", "gelu", "mish")


def nudged(module: torch.nn.Module, args: tuple[Any, ...], seed: int, size: float = 1.0) -> list[Array]:
    """Return the outputs with the roundings of all operators moved; `size` is for those that err in their argument.

    What goes in, weights and buffers are left as they are: their digits are the same on both sides, and decide comparisons.
    """
    generator = torch.Generator().manual_seed(seed)
    for noisy in (Noisy(generator, size), nullcontext()):
        try:
            with noisy, sdpa_kernel(SDPBackend.MATH):  # what is rounded inside of attention is seen in its plain steps only
                made = eager.call(eager.fresh(module), args)
            return arrays(made)
        except Exception:  # an input at the edge of what the model takes; torch.cond and its like do not bear being watched
            continue
    return []


def summed_in_turn(module: torch.nn.Module, args: tuple[Any, ...]) -> list[Array]:
    """Return the outputs with every plain sum taken in turn; none where that cannot be."""
    try:
        with _InTurn():
            return arrays(eager.call(eager.fresh(module), args))
    except Exception:  # torch.cond and its like do not bear being watched
        return []


class _InTurn(Watching):
    """While it is on, plain sums are taken in turn."""

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        other = in_turn(op_name(func), func, args, out)
        return out if other is None else other


class Noisy(Watching):
    """While it is on, a sum of n numbers comes out up to the square root of n units in the last place off.

    Where little is left of large terms, it is off by a unit of all of them together. A bounded function comes out one unit
    of its range off; one whose argument is large, or is taken from its mean first, is off as by one unit of the argument.
    """

    def __init__(self, generator: torch.Generator, size: float = 1.0) -> None:
        super().__init__()
        self._generator, self._size = generator, size

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = [a for a in args if isinstance(a, torch.Tensor) and not a.is_nested]
        scale = _scale(op_name(func).rstrip("_"), given)
        whole = _of_sizes(func, args, kwargs)
        if _errs_in_its_argument(op_name(func)) and not is_mutable(func):
            args = tuple(nudge(a, self._generator, self._size) if _float(a) else a for a in args)
        out = func(*args, **kwargs)
        if whole is not None:
            return out + _signs(out, self._generator) * torch.finfo(out.dtype).eps * torch.maximum(
                whole, out.abs() * math.sqrt(terms(str(func), given, [out]))
            )
        if isinstance(out, tuple) and not is_mutable(func):
            if (far := moved_by_its_mean(op_name(func), args, out)) is not None:
                out = (out[0] + _signs(out[0], self._generator) * far, *out[1:])
            return tuple(self._noisy(o, scale, terms(str(func), given, [o])) if _float(o) else o for o in out)
        if isinstance(out, torch.Tensor) and out.is_nested and not is_mutable(func):
            return self._noisy_rows(func, out, given)
        if not _float(out):
            return out
        moved = self._noisy(out, scale, terms(str(func), given, [out]))
        return out.copy_(moved) if is_mutable(func) and moved is not out else moved

    def _noisy(self, out: torch.Tensor, scale: Any, many: int) -> torch.Tensor:
        if scale is not None:
            return out + _signs(out, self._generator) * scale * torch.finfo(out.dtype).eps
        return _moved(out, _signs(out, self._generator), math.sqrt(many)) if many > 1 else out

    def _noisy_rows(self, func: Any, out: torch.Tensor, given: list[torch.Tensor]) -> torch.Tensor:
        """Return rows of unlike lengths, as the encoders of torch make of padded ones, with their numbers moved."""
        if out.layout is not torch.strided or not out.is_floating_point():
            return out
        moved = out.clone()
        numbers = moved.values()
        numbers.copy_(self._noisy(numbers, None, terms(str(func), given, [numbers])))
        return moved


def _errs_in_its_argument(name: str) -> bool:
    return name.rstrip("_") not in EXACT and any(word in name for word in OF_ARGUMENT)


def _of_sizes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """Return what a plain sum, or a sum of products, comes to if none of its terms is negative; None for other operators."""
    name = op_name(func)
    if name == "linalg_cross":
        return _longest_cross(*args[:2])
    if name not in (*PLAIN, *PRODUCTS, *FUSED, "convolution") or is_mutable(func):
        return None
    whole = func(*(a.abs() if _float(a) else a for a in args), **kwargs)
    return whole if _float(whole) else None


def _longest_cross(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return how long a cross product may be: its kernel rounds either product once, or the difference of both alone."""
    return one.abs().amax() * other.abs().amax()


def _float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_nested and value.is_floating_point()


def _scale(op: str, given: list[torch.Tensor]) -> Any:
    """Return what a bounded function's error is in proportion to, read before it may overwrite its argument; None for others."""
    if op in BOUNDED or any(word in op for word in RECURRENT):
        return 1.0
    return given[0].abs().clamp(min=1) if op in GATED and given else None


def nudge(tensor: torch.Tensor, generator: torch.Generator, size: float) -> torch.Tensor:
    """Return a tensor whose numbers are moved up or down, or left, by some units in the last place."""
    return _moved(tensor, _whole(tensor, 3, generator) - 1, size)


def _signs(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return 2 * _whole(like, 2, generator) - 1


def _whole(like: torch.Tensor, below: int, generator: torch.Generator) -> torch.Tensor:
    """Return small whole numbers, drawn in 8 bits: those of a long call are many."""
    return torch.empty(like.shape, dtype=torch.int8).random_(0, below, generator=generator)


def _moved(tensor: torch.Tensor, signs: torch.Tensor, size: float) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    least = torch.finfo(tensor.dtype).smallest_normal * torch.finfo(tensor.dtype).eps  # denormal numbers have fewer digits
    steps = (tensor.abs() * (size * torch.finfo(tensor.dtype).eps)).clamp(min=least)
    return torch.where(tensor == 0, tensor, tensor + signs.to(tensor.dtype) * steps)
