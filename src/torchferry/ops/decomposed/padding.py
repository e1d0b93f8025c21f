"""Replicated edges where a side is also cut: torch repeats the uncut edge, ONNX's Pad refuses or repeats what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten


def replicated(self: Tensor, padding: Sequence[int]) -> Tensor:
    """Return the tensor with its edges repeated; NotImplemented where no side is cut."""
    if not any(isinstance(p, int) and p < 0 for p in padding):
        return NotImplemented
    x = self
    for index in range(len(padding) // 2):
        left, right = padding[2 * index], padding[2 * index + 1]
        size = x.shape[-1 - index]
        x = x.index_select(-1 - index, torch.arange(-left, size + right).clamp(0, size - 1))
    return x


def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return F.pad for mode `replicate`; NotImplemented for the others."""
    return replicated(self, pad) if mode == "replicate" else NotImplemented


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return the sum for matrices that meet in an axis of size 0, where onnxruntime's Gemm forgets beta, and for integers."""
    if not (self.is_floating_point() or self.is_complex()):
        return self * beta + mat1.matmul(mat2) * alpha
    if not (isinstance(mat1.shape[1], int) and mat1.shape[1] == 0):
        return NotImplemented
    return (self * beta).expand(mat1.shape[0], mat2.shape[1]).clone()


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.pad.default: pad,
    aten.replication_pad1d.default: replicated,
    aten.replication_pad2d.default: replicated,
    aten.replication_pad3d.default: replicated,
    aten.addmm.default: addmm,
}
