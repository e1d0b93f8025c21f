"""Sampling of volumes at the points of a grid: ONNX's GridSample has it from opset 20 on only, onnxruntime for images only."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten

BILINEAR, NEAREST = 0, 1  # torch's numbers for modes
ZEROS, BORDER, REFLECTION = 0, 1, 2  # ... and for what lies outside


def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Return the volume's values at the grid's points, [batch, channels, depth, height, width]."""
    places = [_place(grid[..., 2 - axis], input.shape[2 + axis], padding_mode, align_corners) for axis in range(3)]
    flat = input.reshape(input.shape[0], input.shape[1], -1)
    if interpolation_mode == NEAREST:
        return _taken(flat, [p.round() for p in places], input.shape[2:])
    floors = [p.floor() for p in places]
    total = torch.zeros((), dtype=input.dtype)
    for corner in itertools.product((0, 1), repeat=3):
        weight = torch.ones((), dtype=input.dtype)
        for step, place, floor in zip(corner, places, floors, strict=True):
            weight = weight * ((place - floor) if step else (floor + 1 - place))
        value = _taken(flat, [f + step for f, step in zip(floors, corner, strict=True)], input.shape[2:])
        total = total + value * weight.unsqueeze(1)
    return total


def _place(coordinate: Tensor, size: Any, padding: int, align: bool) -> Tensor:
    """Return where a coordinate in [-1, 1] lies along an axis, in elements."""
    place = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
    if padding == REFLECTION:
        low, span = (0.0, torch.sym_max(size - 1, 1)) if align else (-0.5, size)  # a single element lies at 0
        away = (place - low).abs()
        turns = (away / span).floor()
        rest = away - turns * span
        place = torch.where(torch.remainder(turns, 2.0) == 0, rest + low, span - rest + low)
    return place if padding == ZEROS else place.clamp(0, size - 1)


def _taken(flat: Tensor, places: list[Tensor], sizes: Any) -> Tensor:
    """Return the elements at whole places, and zeros for those that lie outside."""
    inside = torch.ones_like(places[0], dtype=torch.bool)
    index = torch.zeros_like(places[0], dtype=torch.int64)
    for place, size in zip(places, sizes, strict=True):
        inside = inside & (place >= 0) & (place <= size - 1)
        index = index * size + place.clamp(0, size - 1).to(torch.int64)
    shape = index.shape
    picked = flat.gather(2, index.reshape(shape[0], 1, -1).expand(shape[0], flat.shape[1], -1))
    values = picked.reshape(shape[0], flat.shape[1], *shape[1:])
    return torch.where(inside.unsqueeze(1), values, torch.zeros_like(values))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.grid_sampler_3d.default: grid_sampler_3d}
