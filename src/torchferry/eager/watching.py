"""Watching eager: a torch dispatch mode that sees every operator of a call, those inside of torch.cond and its like too."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign.torch_dispatch import EagerDispatchMode
from torchferry.foreign.torch_operators import HigherOrderOperator
from torchferry.foreign.torch_trees import tree_map


class Watching(EagerDispatchMode):
    """A mode whose `watch` is called instead of each operator.

    torch.cond, scan, while_loop, map and FlexAttention are operators that take functions. They run as they are, and the mode
    is on again while they call what they were given.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, HigherOrderOperator):
            return func(*tree_map(self._watched, tuple(args)), **tree_map(self._watched, kwargs or {}))
        return self.watch(func, tuple(args), kwargs or {})

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what an operator gives, and do on the way what the mode is for."""
        raise NotImplementedError

    def _watched(self, value: Any) -> Any:
        if not callable(value) or isinstance(value, torch.Tensor | type):
            return value

        def watched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return value(*args, **kwargs)

        return watched
