"""Einstein sums whose ellipses stand for different axes: ONNX's Einsum wants them alike, so they are written in letters."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten


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


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.einsum.default: einsum}
