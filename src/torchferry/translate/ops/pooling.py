"""Adaptive pools whose bins follow the input's size, also when that is not known before the run.

Each axis is pooled by itself: averages by a matrix of bins, maxima under a mask of bins. torch's own decomposition counts
the bins out for one size; these matrices are computed from the size, and fold to constants where it is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _bins(size: Any, count: int) -> tuple[Tensor, Tensor]:
    """Return a mask [count, size] of what belongs to each bin, and the width of each as [count, 1]."""
    bins = torch.arange(count).unsqueeze(-1)
    start = torch.div(bins * size, count, rounding_mode="floor")
    end = torch.div((bins + 1) * size + count - 1, count, rounding_mode="floor")
    place = torch.arange(size)
    return (place >= start) & (place < end), end - start


def _average(x: Tensor, axis: int, count: int) -> Tensor:
    if count == 1:
        return x.mean(axis, keepdim=True)
    mask, width = _bins(x.shape[axis], count)
    weights = mask.to(x.dtype) / width.to(x.dtype)
    return x.transpose(axis, -1).matmul(weights.t()).transpose(axis, -1)


def adaptive_average(axes: int) -> Callable[..., Tensor]:
    """Return adaptive_avg_pool over the last `axes` axes."""

    def function(self: Tensor, output_size: Sequence[int]) -> Tensor:
        x = self
        for offset, count in enumerate(output_size):
            axis = offset - axes
            if not (isinstance(x.shape[axis], int) and x.shape[axis] == count):
                x = _average(x, axis, count)
        return x.clone() if x is self else x

    return function


def adaptive_maximum(axes: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return adaptive_max_pool over the last `axes` axes, with the flat index of the first largest."""

    def function(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
        values, flat = self, torch.zeros((), dtype=torch.int64)
        stride: Any = 1
        for offset in reversed(range(axes)):  # the last axis first, so that among equals the first in memory wins
            axis = offset - axes
            size, count = self.shape[axis], output_size[offset]
            mask, _ = _bins(size, count)
            spread = values.transpose(axis, -1).unsqueeze(-2)
            masked = torch.where(mask, spread, _lowest(values.dtype))
            place = masked.argmax(-1)
            values = masked.amax(-1).transpose(axis, -1)
            if flat.dim():
                kept = flat.transpose(axis, -1).unsqueeze(-2).expand_as(masked)
                flat = kept.gather(-1, place.unsqueeze(-1)).squeeze(-1).transpose(axis, -1)
            flat = flat + place.transpose(axis, -1) * stride
            stride = stride * size
        return values, flat

    return function


def _lowest(dtype: torch.dtype) -> float | int:
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def adaptive_max_pool1d(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return adaptive_max_pool1d."""
    return adaptive_maximum(1)(self, output_size)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.adaptive_avg_pool1d.default: adaptive_average(1),
    aten.adaptive_avg_pool2d.default: adaptive_average(2),
    aten._adaptive_avg_pool2d.default: adaptive_average(2),
    aten.adaptive_avg_pool3d.default: adaptive_average(3),
    aten._adaptive_avg_pool3d.default: adaptive_average(3),
    aten.adaptive_max_pool1d.default: adaptive_max_pool1d,
    aten.adaptive_max_pool2d.default: adaptive_maximum(2),
    aten.adaptive_max_pool3d.default: adaptive_maximum(3),
}
