"""`F.max_pool1d(x, x.size(2))`: windows and pools of a size that moves, which torch's operators take as a plain number only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional as F

from torchferry.foreign.torch_dispatch import without_torch_function
from torchferry.foreign.torch_shapes import statically_known_true
from torchferry.ops.bins import largest

Pool = Callable[..., Any]
MAX = {"padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}
AVERAGE = {"padding": 0, "ceil_mode": False, "count_include_pad": True, "divisor_override": None}


def _pool(original: Pool, axes: int, reduce: Pool, usual: Mapping[str, Any]) -> Pool:
    """Return the pool over the last axes, one after the other: whole axes reduced, shorter windows cut out first.

    What only torch's operators do (padding, dilation and so on: what is not as `usual`) is left to them.
    """

    def pooled(input: torch.Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Any:
        given = {**usual, **dict(zip(usual, rest, strict=False)), **options}
        if given != usual:
            with without_torch_function():
                return original(input, kernel_size, stride, *rest, **options)
        out, windows = input, _each(kernel_size, axes)
        for axis, window, step in zip(range(-axes, 0), windows, _each(stride, axes) if stride else windows, strict=True):
            if statically_known_true(window == out.shape[axis]):
                out = reduce(out, axis, keepdim=True)
            else:
                out = reduce(windows_along(out, axis, window, step), -1)
        return out

    return pooled


def windows_along(self: torch.Tensor, dimension: int, size: Any, step: Any) -> torch.Tensor:
    """Return what Tensor.unfold returns: all windows along an axis, each on a last axis."""
    axis = dimension % self.dim()
    first = torch.arange(0, self.shape[axis] - size + 1, step)
    places = first.unsqueeze(-1) + torch.arange(size)
    cut = self.index_select(axis, places.flatten()).unflatten(axis, (first.shape[0], size))
    return cut.movedim(axis + 1, -1)


def _each(value: Any, axes: int) -> list[Any]:
    return list(value) * (axes // len(value)) if isinstance(value, list | tuple) else [value] * axes


def _adaptive_average(input: torch.Tensor, output_size: Any) -> torch.Tensor:
    """Return adaptive_avg_pool1d by way of two axes, whose operator takes a moving size."""
    return F.adaptive_avg_pool2d(input.unsqueeze(-2), (1, *_each(output_size, 1))).squeeze(-2)


def _adaptive_max(axes: int, with_places: bool) -> Pool:
    """Return the pool to so many windows an axis; where no number is named, an axis stays as it is."""

    def pooled(input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        named = zip(input.shape[-axes:], _each(output_size, axes), strict=True)
        result = largest(input, [size if wanted is None else wanted for size, wanted in named])
        return result if with_places else result[0]

    return pooled


SPELLED: dict[Any, Pool] = {
    **{getattr(F, f"adaptive_max_pool{n}d"): _adaptive_max(n, with_places=False) for n in (1, 2, 3)},
    **{getattr(F, f"adaptive_max_pool{n}d_with_indices"): _adaptive_max(n, with_places=True) for n in (1, 2, 3)},
    **{f: _pool(f, axes, torch.amax, MAX) for axes, f in enumerate((F.max_pool1d, F.max_pool2d, F.max_pool3d), 1)},
    **{f: _pool(f, axes, torch.mean, AVERAGE) for axes, f in enumerate((F.avg_pool1d, F.avg_pool2d, F.avg_pool3d), 1)},
    F.adaptive_avg_pool1d: _adaptive_average,
    torch.Tensor.unfold: windows_along,
}
