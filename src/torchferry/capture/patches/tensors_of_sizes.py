"""`torch.tensor([height, width])` of sizes that move keeps them moving: torch itself would write down the example's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchferry.capture.patches.replace import replaced

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which tensors made of symbolic numbers are stacked from them."""
    return replaced(torch, {name: _of_symbols(getattr(torch, name)) for name in ("tensor", "as_tensor")})


def _of_symbols(original: Callable[..., Any]) -> Callable[..., Any]:
    def make(data: Any, *args: Any, **kwargs: Any) -> Any:
        if _has_symbols(data):
            return _stacked(data, kwargs.get("dtype") or _dtype(data))
        return original(data, *args, **kwargs)

    return make


def _has_symbols(data: Any) -> bool:
    if isinstance(data, list | tuple | torch.Size):
        return any(_has_symbols(item) for item in data)
    return isinstance(data, _SYMBOLS)


def _dtype(data: Any) -> torch.dtype:
    leaves = torch.utils._pytree.tree_leaves(list(data) if isinstance(data, list | tuple) else data)
    if any(isinstance(leaf, float | torch.SymFloat) for leaf in leaves):
        return torch.get_default_dtype()
    return torch.int64


def _stacked(data: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(data, list | tuple):
        return torch.stack([_stacked(item, dtype) for item in data])
    if isinstance(data, torch.Tensor):
        return data.to(dtype)
    return torch.scalar_tensor(data, dtype=dtype)
