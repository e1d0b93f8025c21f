"""Reductions over runs of rows: segment_reduce by lengths or offsets, and embedding_bag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten

START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -torch.inf, "min": torch.inf}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Return each segment's reduction, under a mask [segments, rows] of what belongs to it."""
    if offsets is not None:
        starts, ends = offsets.narrow(-1, 0, offsets.shape[-1] - 1), offsets.narrow(-1, 1, offsets.shape[-1] - 1)
    else:
        assert lengths is not None
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    place = torch.arange(data.shape[axis])
    mask = (place >= starts.unsqueeze(-1)) & (place < ends.unsqueeze(-1))
    mask = mask.reshape(*mask.shape, *[1] * (data.dim() - axis - 1))
    start = START[reduce] if initial is None else float(initial)
    spread = torch.where(mask, data.unsqueeze(axis), torch.full((), START[reduce], dtype=data.dtype))
    axis = axis + 1
    if reduce == "prod":
        return spread.prod(axis) * start
    if reduce == "max":
        return spread.amax(axis).clamp_min(start)
    if reduce == "min":
        return spread.amin(axis).clamp_max(start)
    total = spread.sum(axis) + start
    if reduce == "sum":
        return total
    count = mask.sum(axis)
    mean = total / count.clamp_min(1).to(data.dtype)
    return mean if initial is not None else torch.where(count == 0, torch.nan, mean)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the sum (mode 0), mean (1) or maximum (2) of each bag's rows; of an empty bag, zeros."""
    starts = offsets.narrow(0, 0, offsets.shape[0] - 1) if include_last_offset else offsets
    place = torch.arange(indices.shape[0])
    bag = (place.unsqueeze(-1) >= starts).sum(-1) - 1
    rows = weight.index_select(0, indices.reshape(-1))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    padding = None if padding_idx is None or padding_idx < 0 else padding_idx
    counts = torch.ones_like(place) if padding is None else (indices != padding).to(torch.int64)
    sizes = aten.scatter_add(torch.zeros_like(starts, dtype=torch.int64), 0, bag, counts)
    kept, full = counts.unsqueeze(-1) != 0, (sizes != 0).unsqueeze(-1)
    to, empty = bag.unsqueeze(-1).expand_as(rows), torch.zeros_like(starts, dtype=rows.dtype).unsqueeze(-1)
    empty = empty.expand(starts.shape[0], rows.shape[1])
    if mode == 2:
        lowest = torch.full((), -torch.inf, dtype=rows.dtype)
        best = aten.scatter_reduce.two(empty + lowest, 0, to, torch.where(kept, rows, lowest), "amax")
        return torch.where(full, best, torch.zeros_like(best)), bag, sizes, torch.zeros_like(best, dtype=torch.int64)
    total = aten.scatter_add(empty.clone(), 0, to, torch.where(kept, rows, torch.zeros_like(rows)))
    if mode == 1:
        total = total / sizes.clamp_min(1).unsqueeze(-1).to(rows.dtype)
    return total, bag, sizes, sizes


def embedding_bag_of_padding(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Return embedding_bag; a padding that is counted from the end is taken from the front."""
    weight, padding = args[0], kwargs.pop("padding_idx", args[8] if len(args) > 8 else None)
    if padding is not None and padding < 0:
        padding = padding + weight.shape[0]
    return embedding_bag(*args[:8], **{**kwargs, "padding_idx": padding})


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.segment_reduce.default: segment_reduce,
    aten.embedding_bag.default: embedding_bag,
    aten.embedding_bag.padding_idx: embedding_bag_of_padding,
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_forward_only.default: embedding_bag,
}
