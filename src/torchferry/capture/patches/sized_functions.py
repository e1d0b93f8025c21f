"""Functions of torch that take a size as a plain number get one that may move: they are spelled in ones that can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from torchferry.capture.patches import resizing, tensors_of_sizes

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class SizedFunctions(TorchFunctionMode):
    """Takes the place of a few functions of torch when a symbolic number reaches them."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # inside torch.cond and its like dynamo reads this: keep it short
            return func(*args, **kwargs)
        spelled = _SPELLED.get(func)
        if spelled is not None and _symbolic((args, kwargs)):
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
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).long()


def _triangle_indices(keep: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def indices(row: Any, col: Any, offset: int = 0, **where: Any) -> torch.Tensor:
        return keep(torch.ones(row, col, dtype=torch.int64), diagonal=offset).nonzero().t()

    return indices


def _window(a: float, b: float) -> Callable[..., torch.Tensor]:
    def window(window_length: Any, periodic: bool = True, *, dtype: torch.dtype | None = None, **where: Any) -> torch.Tensor:
        dtype = dtype or torch.get_default_dtype()
        length = torch.scalar_tensor(window_length, dtype=dtype) - (0 if periodic else 1)
        return a - b * torch.cos(torch.arange(window_length, dtype=dtype) * (2 * torch.pi) / length)

    return window


_SPELLED: dict[Any, Callable[..., Any]] = {
    torch.tensor: tensors_of_sizes.stacked,
    torch.as_tensor: tensors_of_sizes.stacked,
    torch.linspace: _linspace,
    torch.logspace: _logspace,
    functional.one_hot: _one_hot,
    torch.tril_indices: _triangle_indices(torch.tril),
    torch.triu_indices: _triangle_indices(torch.triu),
    torch.hann_window: _window(0.5, 0.5),
    torch.hamming_window: _window(0.54, 0.46),
    functional.interpolate: resizing.interpolate,
}
