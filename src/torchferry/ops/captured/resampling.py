"""F.interpolate with a scale factor that follows from the sizes: torch's operators take scales as plain numbers only.

The resampling is written out, one axis at a time, as a product with a matrix that is built from the sizes in the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from torchferry.foreign.torch_dispatch import without_torch_function

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "nearest": None, "nearest-exact": None}


def interpolate(
    input: torch.Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    """Return what F.interpolate returns; with symbolic scales the matrices are written out."""
    if scale_factor is None or mode not in _LINEAR or antialias or align_corners:
        return _original(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    axes = input.dim() - 2
    scales = list(scale_factor) if isinstance(scale_factor, list | tuple) else [scale_factor] * axes
    if recompute_scale_factor:
        sizes = [torch.sym_int(input.shape[2 + i] * s) for i, s in enumerate(scales)]
        return _original(input, sizes, None, mode, align_corners, None, antialias)
    out = input
    for i, scale in enumerate(scales):
        out = _along(out, 2 + i, scale, mode)
    return out


def _original(*args: Any) -> torch.Tensor:
    with without_torch_function():
        return functional.interpolate(*args)


def _along(x: torch.Tensor, axis: int, scale: Any, mode: str) -> torch.Tensor:
    """Return a tensor resampled along one axis: times the matrix of weights, or picked by index."""
    count = x.shape[axis]
    wanted = torch.sym_int(count * scale)
    factor = torch.scalar_tensor(scale, dtype=torch.float32).reciprocal()
    place = torch.arange(wanted, dtype=torch.float32)
    last = torch.scalar_tensor(count, dtype=torch.int64) - 1
    if mode.startswith("nearest"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        index = torch.floor((place + shift) * factor).long()
        return x.index_select(axis, torch.minimum(index.clamp(min=0), last))
    source = (place + 0.5) * factor - 0.5
    taps = _cubic(source) if mode == "bicubic" else _linear(source.clamp(min=0))
    matrix: Any = 0
    for index, weight in taps:
        inside = torch.minimum(index.clamp(min=0), last)
        matrix = matrix + (inside.unsqueeze(1) == torch.arange(count)).float() * weight.unsqueeze(1)
    moved = x.movedim(axis, -1).float()
    return torch.matmul(moved, matrix.t()).to(x.dtype).movedim(-1, axis)


def _linear(source: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    low = torch.floor(source)
    part = source - low
    return [(low.long(), 1 - part), (low.long() + 1, part)]


def _cubic(source: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The four taps of torch's bicubic kernel, a = -0.75."""
    low = torch.floor(source)
    t = source - low
    a = -0.75

    def near(x: torch.Tensor) -> torch.Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: torch.Tensor) -> torch.Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights: list[tuple[int, Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = [
        (-1, far, t + 1),
        (0, near, t),
        (1, near, 1 - t),
        (2, far, 2 - t),
    ]
    return [(low.long() + k, kernel(x)) for k, kernel, x in weights]
