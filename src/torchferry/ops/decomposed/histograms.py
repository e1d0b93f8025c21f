"""Counts of values in bins, with bins given by number or by edges, in one dimension or several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.sorting import searchsorted


def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements fall into each of equal bins."""
    x = self.reshape(-1)
    low, high = (torch.scalar_tensor(v, dtype=x.dtype) for v in (min, max))
    if min == max:
        low, high = (x.amin(), x.amax()) if min == 0 else (low, high)
        flat = low == high
        low, high = torch.where(flat, low - 1, low), torch.where(flat, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = ((x - low) * bins / (high - low)).floor().clamp(0, bins - 1).to(torch.int64)
    place = torch.where(inside, place, bins)
    return aten.scatter_add(torch.zeros(bins + 1, dtype=x.dtype), 0, place, torch.ones_like(x))[:bins]  # type: ignore[no-any-return]


def _edges(x: Tensor, bins: int, span: Sequence[float] | None) -> Tensor:
    """Return the edges of equal bins over the span, or over the data where none is given."""
    if span is not None:
        low, high = (torch.scalar_tensor(v, dtype=x.dtype) for v in span)
    elif isinstance(x.shape[0], int) and x.shape[0] == 0:
        low, high = torch.zeros((), dtype=x.dtype), torch.ones((), dtype=x.dtype)
    else:
        low, high = x.amin(), x.amax()
        flat = low == high
        low, high = torch.where(flat, low - 0.5, low), torch.where(flat, high + 0.5, high)
    step, place = (high - low) / bins, torch.arange(bins + 1)
    return torch.where(place < (bins + 1) // 2, low + step * place, high - step * (bins - place))  # as torch.linspace does


def _counted(x: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Return the histogram of points [n, axes] over the boxes between edges; the last edge belongs to the last box."""
    sizes = [e.shape[0] - 1 for e in edges]
    total = math.prod(sizes)
    inside, place = torch.ones_like(x[:, 0], dtype=torch.bool), torch.zeros_like(x[:, 0], dtype=torch.int64)
    for axis, edge in enumerate(edges):
        value = x[:, axis].contiguous()
        inside = inside & (value >= edge[0]) & (value <= edge[-1])
        box = (searchsorted(edge, value, right=True) - 1).clamp(0, sizes[axis] - 1)
        place = place * sizes[axis] + box
    weights = torch.ones_like(x[:, 0]) if weight is None else weight.reshape(-1).to(x.dtype)
    empty = torch.zeros(total + 1, dtype=x.dtype)
    counts = aten.scatter_add(empty, 0, torch.where(inside, place, total), weights)[:total].reshape(sizes)
    if not density:
        return counts  # type: ignore[no-any-return]
    counts = counts / counts.sum()
    for axis, edge in enumerate(edges):
        counts = counts / (edge[1:] - edge[:-1]).reshape([-1 if a == axis else 1 for a in range(len(edges))])
    return counts


def histogram(
    self: Tensor, bins: int = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """Return torch.histogram for a number of bins."""
    x = self.reshape(-1)
    edges = _edges(x, bins, range)
    return _counted(x.unsqueeze(-1), [edges], weight, density), edges


def histogram_of_edges(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """Return torch.histogram for edges."""
    return _counted(self.reshape(-1, 1), [bins], weight, density), bins.clone()


def boxes(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor]:
    """Return the edges of torch.histogramdd."""
    points = self.reshape(-1, len(bins))
    spans = [None if range is None else range[2 * axis : 2 * axis + 2] for axis, _ in enumerate(bins)]
    return [_edges(points[:, axis], count, spans[axis]) for axis, count in enumerate(bins)]


def histogramdd(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    """Return torch.histogramdd for numbers of bins."""
    return _counted(self.reshape(-1, len(bins)), boxes(self, bins, range=range), weight, density)


def histogramdd_of_edges(self: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False) -> Tensor:
    """Return torch.histogramdd for edges."""
    return _counted(self.reshape(-1, len(bins)), bins, weight, density)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.histc.default: histc,
    aten.histogram.bin_ct: histogram,
    aten.histogram.bins_tensor: histogram_of_edges,
    aten._histogramdd_bin_edges.default: boxes,
    aten._histogramdd_from_bin_cts.default: histogramdd,
    aten._histogramdd_from_bin_tensors.default: histogramdd_of_edges,
}
