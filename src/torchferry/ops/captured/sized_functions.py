"""Functions of torch that take a size as a plain number get one that may move: they are spelled in ones that can."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from torchferry.foreign.torch_dispatch import without_torch_function
from torchferry.ops.captured import pooling, resampling, tensors_of_sizes, windows
from torchferry.ops.one_hot import one_hot

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class SizedFunctions(TorchFunctionMode):
    """Takes the place of a few functions of torch when a symbolic number reaches them."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # inside torch.cond and its like dynamo reads this: keep it short
            return func(*args, **kwargs)
        spelled = _SPELLED.get(func)
        if spelled is not None and (_symbolic((args, kwargs)) or _left_open((*args, *kwargs.values()))):
            return spelled(*args, **kwargs)
        return func(*args, **kwargs)


def patch(module: Any) -> SizedFunctions:
    """Return a context in which sizes that move may be given to these functions."""
    return SizedFunctions()


def _symbolic(values: Any) -> bool:
    if isinstance(values, list | tuple):
        return any(_symbolic(v) for v in values)
    if isinstance(values, dict):
        return any(_symbolic(v) for v in values.values())
    return isinstance(values, _SYMBOLS)


def _left_open(values: Any) -> bool:
    """Whether a size among others is None: the one that the tensor has there, which may move."""
    return any(isinstance(v, list | tuple) and any(size is None for size in v) for v in values)


def _linspace(start: Any, end: Any, steps: Any, *, dtype: torch.dtype | None = None, **where: Any) -> torch.Tensor:
    """As torch computes it: from the start for the first half, from the end for the second."""
    dtype = dtype or torch.get_default_dtype()
    index = torch.arange(steps, dtype=dtype)
    count = torch.scalar_tensor(steps, dtype=dtype)
    first, last = torch.as_tensor(start, dtype=dtype), torch.as_tensor(end, dtype=dtype)
    step = (last - first) / (count - 1).clamp(min=1)
    return torch.where(index < torch.floor(count / 2), first + step * index, last - step * (count - index - 1)) * (
        count > 1
    ) + first * (count == 1)


def _logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: torch.dtype | None = None, **where: Any
) -> torch.Tensor:
    return torch.pow(torch.as_tensor(base, dtype=dtype or torch.get_default_dtype()), _linspace(start, end, steps, dtype=dtype))


def _one_hot(tensor: torch.Tensor, num_classes: Any = -1) -> torch.Tensor:
    return one_hot(tensor, num_classes)


def _triangle_indices(keep: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def indices(row: Any, col: Any, offset: int = 0, **where: Any) -> torch.Tensor:
        return keep(torch.ones(row, col, dtype=torch.int64), diagonal=offset).nonzero().t()

    return indices


def _repeat_interleave(input: torch.Tensor, repeats: Any, dim: int | None = None, **options: Any) -> torch.Tensor:
    axis, given = (0, input.flatten()) if dim is None else (dim % input.dim(), input)
    sizes = [-1] * (given.dim() + 1)
    sizes[axis + 1] = repeats
    return given.unsqueeze(axis + 1).expand(sizes).flatten(axis, axis + 1)


def _affine_grid(theta: torch.Tensor, size: Any, align_corners: bool | None = None) -> torch.Tensor:
    """As torch computes it: the places of the pixels along each axis, with a one behind them, times the matrix."""

    def places(count: Any) -> torch.Tensor:
        steps = torch.scalar_tensor(count, dtype=theta.dtype)
        along = _linspace(-1, 1, count, dtype=theta.dtype) * (count > 1)  # a single pixel lies in the middle
        return along if align_corners else along * (steps - 1) / steps

    rows = torch.meshgrid(*[places(count) for count in size[2:]], indexing="ij")
    points = torch.stack([*reversed(rows), torch.ones_like(rows[0])], -1).flatten(0, -2)
    grid = points.expand(size[0], -1, -1).bmm(theta.transpose(1, 2))
    return grid.unflatten(1, list(size[2:]))


def _as_tensor(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a function of a tensor and a number with the number made a tensor, whose value nothing need know."""

    def call(input: Any, number: Any, *rest: Any, **options: Any) -> torch.Tensor:
        dtype = input.dtype if isinstance(input, torch.Tensor) and input.is_floating_point() else None
        number = torch.scalar_tensor(number, dtype=dtype) if isinstance(number, _SYMBOLS) else number
        with without_torch_function():
            return function(input, number, *rest, **options)

    return call


def _quotient(input: Any, other: Any, *, rounding_mode: str | None = None, **out: Any) -> Any:
    """Return the whole quotient of sizes as a size, which is what such a line wants; all else as torch has it."""
    whole = all(isinstance(n, int | torch.SymInt) for n in (input, other))
    if not whole or rounding_mode is None or out:
        return torch.div(input, other, rounding_mode=rounding_mode, **out)
    return input // other if rounding_mode == "floor" or (input >= 0) == (other > 0) else -(-input // other)


_SPELLED: dict[Any, Callable[..., Any]] = {
    torch.div: _quotient,
    torch.divide: _quotient,
    torch.floor_divide: functools.partial(_quotient, rounding_mode="floor"),
    torch.tensor: tensors_of_sizes.stacked,
    torch.as_tensor: tensors_of_sizes.stacked,
    torch.Tensor.new_tensor: lambda like, data, **how: tensors_of_sizes.stacked(data, **{"dtype": like.dtype, **how}),
    torch.linspace: _linspace,
    torch.logspace: _logspace,
    F.one_hot: _one_hot,
    F.affine_grid: _affine_grid,
    torch.tril_indices: _triangle_indices(torch.tril),
    torch.triu_indices: _triangle_indices(torch.triu),
    torch.repeat_interleave: _repeat_interleave,
    torch.Tensor.repeat_interleave: _repeat_interleave,
    F.interpolate: resampling.interpolate,
    **{function: _as_tensor(function) for function in (torch.pow, torch.Tensor.pow, torch.Tensor.__pow__)},
    **{function: _as_tensor(function) for function in (torch.quantile, torch.Tensor.quantile)},
    **pooling.SPELLED,
    **windows.SPELLED,
}
