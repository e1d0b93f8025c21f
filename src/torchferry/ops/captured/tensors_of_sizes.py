"""`torch.tensor([height, width])` of sizes that move keeps them moving: torch itself would write down the example's."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign.torch_trees import tree_leaves


def stacked(data: Any, *, dtype: torch.dtype | None = None, **where: Any) -> torch.Tensor:
    """Return what torch.tensor returns, the symbolic numbers in it being computed in the graph."""
    return _stacked(data, dtype or _dtype(data))


def _dtype(data: Any) -> torch.dtype:
    leaves = tree_leaves(list(data) if isinstance(data, list | tuple) else data)
    if any(isinstance(leaf, float | torch.SymFloat) for leaf in leaves):
        return torch.get_default_dtype()
    if all(isinstance(leaf, bool | torch.SymBool) for leaf in leaves):
        return torch.bool
    return torch.int64


def _stacked(data: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(data, list | tuple):
        return torch.stack([_stacked(item, dtype) for item in data])
    if isinstance(data, torch.Tensor):
        return data.to(dtype)
    if isinstance(data, torch.SymBool):
        return torch.scalar_tensor(torch.sym_ite(data, 1, 0), dtype=torch.int64).to(dtype)
    return torch.scalar_tensor(data, dtype=dtype)
