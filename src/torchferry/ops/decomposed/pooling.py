"""Adaptive pools whose bins follow the input's size, also when that is not known before the run.

Each axis is pooled by itself: averages by a matrix of bins, maxima under a mask of bins. torch's own decomposition counts
the bins out for one size; these matrices are computed from the size, and fold to constants where it is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.bins import bins, largest


def _average(x: Tensor, axis: int, count: int) -> Tensor:
    if count == 1:
        return x.mean(axis, keepdim=True)
    mask, width = bins(x.shape[axis], count)
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


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.adaptive_avg_pool1d.default: adaptive_average(1),
    aten.adaptive_avg_pool2d.default: adaptive_average(2),
    aten._adaptive_avg_pool2d.default: adaptive_average(2),
    aten.adaptive_avg_pool3d.default: adaptive_average(3),
    aten._adaptive_avg_pool3d.default: adaptive_average(3),
    aten.adaptive_max_pool1d.default: largest,
    aten.adaptive_max_pool2d.default: largest,
    aten.adaptive_max_pool3d.default: largest,
}
