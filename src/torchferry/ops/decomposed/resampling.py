"""Anti-aliased resizing as two small matrices, and average pools with a divisor of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp_min(0)


def _cubic(x: Tensor) -> Tensor:
    a, x = -0.5, x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _weights(size: Any, count: Any, scale: float | None, align: bool, reach: int, shape: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the matrix [count, size] that takes one axis to its new size."""
    step = ((size - 1) / (count - 1) if count > 1 else 0.0) if align else size / count if scale is None else 1.0 / scale
    wide = torch.sym_max(step, 1.0)
    support = reach * wide
    centre = (torch.arange(count, dtype=torch.float32) + 0.5).unsqueeze(-1) * step
    first = (centre - support + 0.5).trunc().clamp_min(0)
    last = (centre + support + 0.5).trunc().clamp_max(size)
    place = torch.arange(size, dtype=torch.float32)
    weight = torch.where((place >= first) & (place < last), shape((place - centre + 0.5) / wide), 0.0)
    return weight / weight.sum(-1, keepdim=True)


def antialiased(reach: int, shape: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return an anti-aliased resize of images."""

    def function(
        self: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        down = _weights(self.shape[-2], output_size[0], scales_h, align_corners, reach, shape).to(self.dtype)
        across = _weights(self.shape[-1], output_size[1], scales_w, align_corners, reach, shape).to(self.dtype)
        return down.matmul(self.matmul(across.t()))

    return function


def average_pool(axes: int) -> Callable[..., Tensor]:
    """Return avg_pool with `divisor_override`; NotImplemented for the plain one, which is translated as it is."""
    pool = getattr(aten, f"avg_pool{axes}d")

    def function(
        self: Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        if divisor_override is None:
            return NotImplemented
        sides = [side for p in reversed(list(padding) * (axes if len(padding) == 1 else 1)) for side in (p, p)]
        kernel = list(kernel_size) * (axes if len(kernel_size) == 1 else 1)
        count = 1
        for size in kernel:
            count *= size
        steps = list(stride) * (axes if len(stride) == 1 else 1) or kernel
        if ceil_mode:  # zeros at the far end let the last, partial window count as a whole one
            for axis in range(axes):
                rest = (self.shape[axis - axes] + 2 * sides[2 * (axes - 1 - axis)] - kernel[axis]) % steps[axis]
                starts_inside = rest != 0 and steps[axis] - rest < kernel[axis]
                sides[2 * (axes - 1 - axis) + 1] += steps[axis] - rest if starts_inside else 0
        padded = aten.constant_pad_nd(self, sides, 0.0) if any(sides) else self
        return pool(padded, kernel, steps) * (count / divisor_override)  # type: ignore[no-any-return]

    return function


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._upsample_bilinear2d_aa.default: antialiased(1, _triangle),
    aten._upsample_bicubic2d_aa.default: antialiased(2, _cubic),
    aten.avg_pool2d.default: average_pool(2),
    aten.avg_pool3d.default: average_pool(3),
}
