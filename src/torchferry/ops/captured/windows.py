"""numpy's and torch's windows of a size that moves (`np.hanning(n)`, `torch.hann_window(n)`), computed in the graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from torchferry.foreign.replaced import replaced


def _hanning(phase: torch.Tensor) -> torch.Tensor:
    return 0.5 + 0.5 * torch.cos(torch.pi * phase)


def _hamming(phase: torch.Tensor) -> torch.Tensor:
    return 0.54 + 0.46 * torch.cos(torch.pi * phase)


def _blackman(phase: torch.Tensor) -> torch.Tensor:
    return 0.42 + 0.5 * torch.cos(torch.pi * phase) + 0.08 * torch.cos(2 * torch.pi * phase)


def _bartlett(phase: torch.Tensor) -> torch.Tensor:
    return 1 - phase.abs()


def _of_numpy(original: Callable[..., Any], shape: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """Return numpy's function, but a tensor where the number of points is symbolic."""

    def window(points: Any) -> Any:
        if not isinstance(points, torch.SymInt):
            return original(points)
        count = torch.scalar_tensor(points, dtype=torch.float64)
        phase = (2 * torch.arange(points, dtype=torch.float64) + 1 - count) / (count - 1).clamp(min=1)
        return shape(phase)

    return window


def _cosines(index: torch.Tensor, last: torch.Tensor, alpha: float, beta: float, gamma: float = 0.0) -> torch.Tensor:
    turn = index * (2 * torch.pi / last).to(index.dtype)  # in this order: a window that ends near zero is all rounding there
    return gamma * torch.cos(2 * turn) - beta * torch.cos(turn) + alpha


def _triangle(index: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return 1 - (index * (2 / last).to(index.dtype) - 1).abs()


def _kaiser(index: torch.Tensor, last: torch.Tensor, beta: float) -> torch.Tensor:
    along = index * (2 * beta / last).to(index.dtype) - beta
    return torch.i0((beta**2 - along**2).clamp(min=0).sqrt()) / torch.i0(torch.scalar_tensor(beta, dtype=index.dtype))


def _of_torch(shape: Callable[..., torch.Tensor], **usual: float) -> Callable[..., torch.Tensor]:
    """Return torch's function, as it computes it: a periodic window is one of a point more, cut short; a single point is 1."""

    def window(
        window_length: Any, periodic: bool = True, *rest: float, dtype: torch.dtype | None = None, **options: Any
    ) -> torch.Tensor:
        given = {**usual, **dict(zip(usual, rest, strict=False)), **{k: v for k, v in options.items() if k in usual}}
        index = torch.arange(window_length, dtype=dtype or torch.get_default_dtype())
        last = torch.scalar_tensor(window_length if periodic else window_length - 1, dtype=torch.float64).clamp(min=1)
        return torch.where(torch.scalar_tensor(window_length) == 1, torch.ones_like(index), shape(index, last, **given))

    return window


def _from_numpy(original: Callable[..., Any]) -> Callable[..., Any]:
    def given(array: Any) -> Any:
        return array if isinstance(array, torch.Tensor) else original(array)

    return given


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which torch takes a tensor for an array: that is what numpy's windows are here."""
    return replaced(torch, {"from_numpy": _from_numpy(torch.from_numpy)})


_SHAPES = {"hanning": _hanning, "hamming": _hamming, "blackman": _blackman, "bartlett": _bartlett}
OF_NUMPY = {name: _of_numpy(getattr(np, name), shape) for name, shape in _SHAPES.items()}
SPELLED: dict[Any, Callable[..., torch.Tensor]] = {
    torch.hann_window: _of_torch(lambda index, last: _cosines(index, last, 0.5, 0.5)),
    torch.hamming_window: _of_torch(_cosines, alpha=0.54, beta=0.46),
    torch.blackman_window: _of_torch(lambda index, last: _cosines(index, last, 0.42, 0.5, 0.08)),
    torch.bartlett_window: _of_torch(_triangle),
    torch.kaiser_window: _of_torch(_kaiser, beta=12.0),
}
