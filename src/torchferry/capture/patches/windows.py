"""numpy's windows of a size that moves (`np.hanning(n)`), computed in the graph; exact for a window of one point too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from torchferry.capture.patches.replace import replaced


def _hanning(phase: torch.Tensor) -> torch.Tensor:
    return 0.5 + 0.5 * torch.cos(torch.pi * phase)


def _hamming(phase: torch.Tensor) -> torch.Tensor:
    return 0.54 + 0.46 * torch.cos(torch.pi * phase)


def _blackman(phase: torch.Tensor) -> torch.Tensor:
    return 0.42 + 0.5 * torch.cos(torch.pi * phase) + 0.08 * torch.cos(2 * torch.pi * phase)


def _bartlett(phase: torch.Tensor) -> torch.Tensor:
    return 1 - phase.abs()


def _window(original: Callable[..., Any], shape: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """Return numpy's function, but a tensor where the number of points is symbolic."""

    def window(points: Any) -> Any:
        if not isinstance(points, torch.SymInt):
            return original(points)
        count = torch.scalar_tensor(points, dtype=torch.float64)
        phase = (2 * torch.arange(points, dtype=torch.float64) + 1 - count) / (count - 1).clamp(min=1)
        return shape(phase)

    return window


def _from_numpy(original: Callable[..., Any]) -> Callable[..., Any]:
    def given(array: Any) -> Any:
        return array if isinstance(array, torch.Tensor) else original(array)

    return given


@contextmanager
def patch(module: Any) -> Iterator[None]:
    """Let the model's code see these functions for the block."""
    shapes = {"hanning": _hanning, "hamming": _hamming, "blackman": _blackman, "bartlett": _bartlett}
    windows = {name: _window(getattr(np, name), shape) for name, shape in shapes.items()}
    with replaced(np, windows), replaced(torch, {"from_numpy": _from_numpy(torch.from_numpy)}):
        yield
