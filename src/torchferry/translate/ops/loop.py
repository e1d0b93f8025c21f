"""Loops inside a decomposition: torch's `scan` becomes ONNX's Scan, so the graph does not grow with the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from torchferry.errors import ForeignApiMoved


@cache
def _scan_op() -> Any:
    try:
        from torch._higher_order_ops.scan import scan_op
    except ImportError as error:
        raise ForeignApiMoved(f"torch {torch.__version__} keeps its scan operator elsewhere: {error}") from error
    return scan_op


def repeat(times: int, state: Sequence[Tensor], body: Callable[..., Sequence[Tensor]]) -> list[Tensor]:
    """Return the state after `body(k, *state)` was applied for k = 0, 1, ..., times - 1."""

    if _never(times) or any(_never(size) for size in state[0].shape):
        return list(state)

    def step(*values: Tensor) -> list[Tensor]:
        *now, k = values
        return [_own(new) for new in body(k, *now)]

    return list(_scan_op()(step, [_own(s) for s in state], [torch.arange(times)], ()))[: len(state)]


def accumulate(state: Sequence[Tensor], items: Sequence[Tensor], body: Callable[..., Sequence[Tensor]]) -> list[Tensor]:
    """Return every state that `body(*state, *item)` goes through over the items' first axis, stacked."""
    count = len(state)

    def step(*values: Tensor) -> list[Tensor]:
        new = [_own(v) for v in body(*values)]
        return [*new, *(v.clone() for v in new)]

    return list(_scan_op()(step, [_own(s) for s in state], list(items), ()))[count:]


def _own(value: Tensor) -> Tensor:
    """Return a tensor of its own, laid out plainly: scan's body may hand back neither an argument nor another layout."""
    return value.clone(memory_format=torch.contiguous_format)


def _never(size: Any) -> bool:
    return isinstance(size, int) and size == 0
