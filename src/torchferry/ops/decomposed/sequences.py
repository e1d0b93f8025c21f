"""Operators on lists of tensors, element by element, and those that give one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from torch import Tensor

from torchferry.foreign.torch_operators import aten


def each(function: Callable[[Tensor], Tensor]) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Return the function for every tensor of a list."""
    return lambda tensors: [function(t) for t in tensors]


def _at_least(axes: int) -> Callable[[Tensor], Tensor]:
    shapes = {1: ((1,),), 2: ((1, 1), (1, -1)), 3: ((1, 1, 1), (1, -1, 1))}[axes]

    def function(tensor: Tensor) -> Tensor:
        if tensor.dim() < len(shapes):
            return tensor.reshape(shapes[tensor.dim()])
        return tensor.unsqueeze(-1) if axes == 3 and tensor.dim() == 2 else tensor.clone()

    return function


def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """Return the parts as slices where a size moves: torch.onnx makes a sequence, typed as a tensor, which does not load."""
    if all(isinstance(size, int) for size in split_sizes):
        return NotImplemented
    ends = accumulate(split_sizes)
    return [aten.slice(self, dim, end - size, end) for size, end in zip(split_sizes, ends, strict=True)]


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.atleast_1d.Sequence: each(_at_least(1)),
    aten.atleast_2d.Sequence: each(_at_least(2)),
    aten.atleast_3d.Sequence: each(_at_least(3)),
    aten.split_with_sizes.default: split_with_sizes,
}
