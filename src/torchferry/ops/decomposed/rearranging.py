"""Elements in another order, some of them, or one of them in many places: roll, resize, diagonal, copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten


def resize(self: Tensor, size: Sequence[Any], *, memory_format: Any = None) -> Tensor:
    """Return the first elements in another shape; where there would be more than there are, memory is not defined."""
    count: Any = 1
    for s in size:
        count = count * s
    if not (isinstance(count, int) and isinstance(self.numel(), int) and count <= self.numel()):
        return NotImplemented
    return self.reshape(-1).narrow(0, 0, count).reshape(size).clone()


def resize_as(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return the first elements in another tensor's shape."""
    return resize(self, list(the_template.shape))


def roll(self: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Return the tensor turned round by amounts that are known at run time; by fixed ones it is left as it is."""
    shifts, dims = (list(v) if isinstance(v, list | tuple) else [v] for v in (shifts, dims))
    if all(isinstance(shift, int) for shift in shifts):
        return NotImplemented
    if not dims:
        return roll(self.reshape(-1), shifts, [0]).reshape(self.shape)
    result = self
    for shift, dim in zip(shifts, dims, strict=True):
        size = self.shape[dim]
        result = result.index_select(dim, torch.remainder(torch.arange(size) - shift, size))
    return result


def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal, picked by its places: under a mask that is multiplied, infinity beside it would become NaN."""
    square = self.movedim((dim1, dim2), (-2, -1))
    rows, columns = square.shape[-2:]
    down, right = max(-offset, 0), max(offset, 0)
    steps = torch.arange(torch.sym_max(torch.sym_min(rows - down, columns - right), 0))
    return square.flatten(-2).index_select(-1, (steps + down) * columns + steps + right)


def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Return the second tensor in the dtype and shape of the first, which torch.onnx does not spread it to."""
    alike = str(tuple(self.shape)) == str(tuple(src.shape))  # as words: a comparison would be kept as a condition
    return (src if alike else src.expand(self.shape)).to(self.dtype).clone()


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.copy.default: copy,
    aten.diagonal.default: diagonal,
    aten.diagonal_copy.default: diagonal,
    aten.resize.default: resize,
    aten.resize_as.default: resize_as,
    aten.roll.default: roll,
}
