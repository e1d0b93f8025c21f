"""`x[:, :n]` with an n that comes from a value: it is taken to lie within x, as slicing beyond the end means the end.

The graph still slices at n, and a slice in ONNX ends at the end too; only torch's knowledge of the size is at stake.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from torchferry.foreign.torch_export import calls_changed_by
from torchferry.foreign.torch_shapes import assume, expression, is_unbacked


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which a slice tells torch that its end is not beyond the tensor's."""
    return calls_changed_by(_checked)


def _checked(func: Any, args: Any) -> Any:
    if func is torch.Tensor.__getitem__:
        _within(args[0], args[1])
    elif func is torch.Tensor.__setitem__ and isinstance(args[2], torch.Tensor):
        return (*args[:2], _of_its_own(args[2]))
    return args


def _within(tensor: torch.Tensor, index: Any) -> None:
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(p is Ellipsis or isinstance(p, torch.Tensor | bool) for p in parts):
        return
    axis = 0
    for part in parts:
        if part is None:
            continue
        stop: Any = part.stop if isinstance(part, slice) else None
        if is_unbacked(stop) and not _from_the_end(stop):
            assume(stop >= 0)
            assume(stop <= tensor.shape[axis])
        axis += 1


def _of_its_own(value: torch.Tensor) -> torch.Tensor:
    """Return what is written to a slice, `x[:, n:] += 1`, apart from the tensor that it is a slice of.

    torch would view it as it lies there, and with a size that no one knows cannot say whether that can be done.
    """
    return value.clone(memory_format=torch.contiguous_format) if any(map(is_unbacked, value.shape)) else value


def _from_the_end(stop: torch.SymInt) -> bool:
    """Say whether a stop counts from the end, as in `x[:-k]`: where that is, 0 being no exception, is left to the graph."""
    return bool(expression(stop).could_extract_minus_sign())
