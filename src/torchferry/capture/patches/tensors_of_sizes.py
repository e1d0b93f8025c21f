"""`torch.tensor([height, width])` of sizes that move keeps them moving: torch itself would write down the example's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class StackedSizes(TorchFunctionMode):
    """Makes tensors of symbolic numbers by stacking them."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (
            func in (torch.tensor, torch.as_tensor)
            and not torch.compiler.is_dynamo_compiling()
            and args
            and _has_symbols(args[0])
        ):
            return _stacked(args[0], kwargs.get("dtype") or _dtype(args[0]))
        return func(*args, **kwargs)


def patch(module: Any) -> StackedSizes:
    """Return a context in which tensors made of symbolic numbers are stacked from them."""
    return StackedSizes()


def _has_symbols(data: Any) -> bool:
    if isinstance(data, list | tuple | torch.Size):
        return any(_has_symbols(item) for item in data)
    return isinstance(data, _SYMBOLS)


def _dtype(data: Any) -> torch.dtype:
    leaves = torch.utils._pytree.tree_leaves(list(data) if isinstance(data, list | tuple) else data)
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
