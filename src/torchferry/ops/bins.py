"""Bins of adaptive pools, computed from sizes that may move: which elements belong to each, and the largest of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def bins(size: Any, count: Any) -> tuple[Tensor, Tensor]:
    """Return a mask [count, size] of what belongs to each bin, and the width of each as [count, 1]."""
    each = torch.arange(count).unsqueeze(-1)
    start = torch.div(each * size, count, rounding_mode="floor")
    end = torch.div((each + 1) * size + count - 1, count, rounding_mode="floor")
    place = torch.arange(size)
    return (place >= start) & (place < end), end - start


def largest(x: Tensor, counts: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Return adaptive_max_pool over the last axes, one after the other, with the flat index of the first largest."""
    values, flat = x, torch.zeros((), dtype=torch.int64)
    lowest = -torch.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    stride: Any = 1
    for axis in range(-1, -len(counts) - 1, -1):  # the last axis first, so that among equals the first in memory wins
        mask, _ = bins(x.shape[axis], counts[axis])
        masked = torch.where(mask, values.transpose(axis, -1).unsqueeze(-2), lowest)
        place = masked.argmax(-1)
        values = masked.amax(-1).transpose(axis, -1)
        if flat.dim():
            kept = flat.transpose(axis, -1).unsqueeze(-2).expand_as(masked)
            flat = kept.gather(-1, place.unsqueeze(-1)).squeeze(-1).transpose(axis, -1)
        flat = flat + place.transpose(axis, -1) * stride
        stride = stride * x.shape[axis]
    return values, flat
