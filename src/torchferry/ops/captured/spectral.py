"""`torch.fft.fft(x, n)`: a signal of a size that moves is cut or padded to n first; torch would settle which by the example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchferry.foreign.torch_shapes import statically_known_true

Transform = Callable[..., Any]
PLAIN, HALVED = ("fft", "ifft", "rfft", "ihfft"), ("irfft", "hfft")  # the second read half a spectrum and one element more


def _of_one_axis(original: Transform, halved: bool) -> Transform:
    def transform(input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, **out: Any) -> Any:
        if n is None or out or not _moves(input, n):
            return NotImplemented
        return original(_fitted(input, dim, n // 2 + 1 if halved else n), n, dim, norm)

    return transform


def _of_axes(original: Transform, usual: Any, halved: bool) -> Transform:
    def transform(input: Tensor, s: Any = None, dim: Any = usual, norm: str | None = None, **out: Any) -> Any:
        if s is None or out or not _moves(input, *s):
            return NotImplemented
        x, axes = input, tuple(range(-len(s), 0)) if dim is None else dim
        for place, (axis, length) in enumerate(zip(axes, s, strict=True), start=1):
            if not (isinstance(length, int) and length == -1):  # which leaves an axis as it is
                x = _fitted(x, axis, length // 2 + 1 if halved and place == len(s) else length)
        return original(x, s, axes, norm)

    return transform


def _moves(input: Tensor, *lengths: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for size in (*input.shape, *lengths))


def _fitted(x: Tensor, axis: int, length: Any) -> Tensor:
    """Return a tensor cut, or padded with zeros, to a length along an axis."""
    missing = length - x.shape[axis]
    longer, shorter = statically_known_true(missing >= 0), statically_known_true(missing <= 0)
    if not shorter:
        behind = -1 - (axis if axis < 0 else axis - x.dim())
        x = functional.pad(x, (0, 0) * behind + (0, missing if longer else length))
    return x if longer else x.index_select(axis, torch.arange(length))  # a slice would be asked whether it is contiguous


SPELLED: dict[Any, Transform] = {
    **{getattr(torch.fft, name): _of_one_axis(getattr(torch.fft, name), name in HALVED) for name in (*PLAIN, *HALVED)},
    **{
        getattr(torch.fft, name + axes): _of_axes(getattr(torch.fft, name + axes), usual, name in HALVED)
        for name in (*PLAIN, *HALVED)
        for axes, usual in (("2", (-2, -1)), ("n", None))
    },
}
