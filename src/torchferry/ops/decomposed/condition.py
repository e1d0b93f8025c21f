"""Condition numbers: the ratio of singular values, or a norm of the matrix times that of its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.elimination import inv_ex
from torchferry.ops.decomposed.orthogonal import svdvals


def cond(self: Tensor, p: Any = None) -> Tensor:
    """Return the condition number in a norm, infinity for a matrix that has no inverse."""
    if p in (None, 2, -2):
        values = svdvals(self)
        largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
    inverse, singular = inv_ex(self)
    sizes = torch.linalg.matrix_norm(self, p) * torch.linalg.matrix_norm(inverse, p)
    return torch.where(singular > 0, torch.inf, sizes)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.linalg_cond.default: cond, aten.linalg_cond.p_str: cond}
