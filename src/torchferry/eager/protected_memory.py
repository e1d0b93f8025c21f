"""The user's memory protected: a copy that has it for its weights is stopped before an operator writes there."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.eager.watching import Watching
from torchferry.foreign.torch_operators import is_mutable, schema_of
from torchferry.foreign.torch_tensors import storage_identity
from torchferry.foreign.torch_trees import arg_tree_leaves


class WeightsWritten(Exception):
    """An operator was about to write into weights that are not the copy's own."""


class ProtectedMemory(Watching):
    """While it is on, WeightsWritten is raised in place of any operator that writes into some memory, told by identity."""

    def __init__(self, memory: frozenset[int]) -> None:
        super().__init__()
        self._memory = memory

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_mutable(func):
            for tensor in arg_tree_leaves(*_written(func, args, kwargs)):
                if isinstance(tensor, torch.Tensor) and not tensor.is_nested and storage_identity(tensor) in self._memory:
                    raise WeightsWritten(str(func))
        return func(*args, **kwargs)


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments that an operator writes into."""
    schema = schema_of(func)
    names = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    given = {a.name: value for a, value in zip(schema.arguments, args, strict=False)} | kwargs
    return [given[name] for name in names if name in given]
