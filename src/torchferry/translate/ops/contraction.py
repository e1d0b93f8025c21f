"""Einstein sums whose ellipses stand for different axes: ONNX's Einsum wants them alike, so they are written in letters."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def einsum(equation: str, tensors: Sequence[Tensor], *, path: Sequence[int] | None = None) -> Tensor:
    """Return the sum with ellipses spelled out; NotImplemented where there are none."""
    equation = equation.replace(" ", "")
    if "..." not in equation:
        return NotImplemented
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    widths = [t.dim() - len(term.replace("...", "")) if "..." in term else 0 for term, t in zip(terms, tensors, strict=True)]
    letters = "".join(free[: max(widths)])
    names, operands = [], []
    for term, tensor, width in zip(terms, tensors, widths, strict=True):
        name, operand = _without_ones(term, tensor, letters[len(letters) - width :])
        names.append(name)
        operands.append(operand)
    counts = Counter("".join(terms).replace(".", ""))
    result = right.replace("...", letters) if arrow else letters + "".join(sorted(c for c, n in counts.items() if n == 1))
    lost = [c for c in result if not any(c in name for name in names)]  # axes of size 1 in every operand
    summed = torch.einsum(",".join(names) + "->" + "".join(c for c in result if c not in lost), *operands)
    for place in (i for i, c in enumerate(result) if c in lost):
        summed = summed.unsqueeze(place)
    return summed


def _without_ones(term: str, tensor: Tensor, letters: str) -> tuple[str, Tensor]:
    """Return a term and its tensor with the ellipsis in letters; axes of size 1 in it would be broadcast, and are left out."""
    first = len(term.partition("...")[0])
    ones = [i for i in range(len(letters)) if isinstance(tensor.shape[first + i], int) and tensor.shape[first + i] == 1]
    for index in reversed(ones):
        tensor = tensor.squeeze(first + index)
    return term.replace("...", "".join(c for i, c in enumerate(letters) if i not in ones)), tensor


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


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.einsum.default: einsum,
    aten.roll.default: roll,
    aten.resize.default: resize,
    aten.resize_as.default: resize_as,
}
