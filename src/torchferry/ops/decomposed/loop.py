"""Loops inside a decomposition: torch's `scan` becomes ONNX's Scan, so the graph does not grow with the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_complex import ComplexTensor
from torchferry.foreign.torch_control_flow import scan_op
from torchferry.ops.complex_forms import Forms


def repeat(times: int, state: Sequence[Tensor], body: Callable[..., Sequence[Tensor]]) -> list[Tensor]:
    """Return the state after `body(k, *state)` was applied for k = 0, 1, ..., times - 1."""

    if _never(times) or any(_never(size) for size in state[0].shape):
        return list(state)

    def step(*values: Tensor) -> list[Tensor]:
        *now, k = values
        with Forms():
            return _own(body(k, *whole(now)))

    apart, whole = _halved(state)
    return whole(list(scan_op(step, _own(apart), [torch.arange(times)], ()))[: len(apart)])


def accumulate(state: Sequence[Tensor], items: Sequence[Tensor], body: Callable[..., Sequence[Tensor]]) -> list[Tensor]:
    """Return every state that `body(*state, *item)` goes through over the items' first axis, stacked.

    Where there may be no item, one is added and its state dropped: onnxruntime refuses a Scan over nothing.
    """
    apart, whole = _halved(state)
    count, (parts, whole_item) = len(apart), _halved(items)

    def step(*values: Tensor) -> list[Tensor]:
        with Forms():
            new = _own(body(*whole(values[:count]), *whole_item(values[count:])))
        return [*new, *(v.clone() for v in new)]

    length = parts[0].shape[0]
    if isinstance(length, int):
        return whole(list(scan_op(step, _own(apart), parts, ()))[count:])
    longer = [torch.cat([part, torch.zeros(1, *part.shape[1:], dtype=part.dtype)]) for part in parts]
    return whole([made.narrow(0, 0, length) for made in list(scan_op(step, _own(apart), longer, ()))[count:]])


def _own(values: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors of their own, laid out plainly: scan's body may hand back neither an argument nor another layout."""
    return [part.clone(memory_format=torch.contiguous_format) for part in _halved(values)[0]]


def _halved(values: Sequence[Tensor]) -> tuple[list[Tensor], Callable[[Sequence[Tensor]], list[Tensor]]]:
    """Return the parts of the complex ones and the real ones, and what puts such a list together again."""
    pairs = [isinstance(v, ComplexTensor) for v in values]

    def whole(parts: Sequence[Tensor]) -> list[Tensor]:
        rest = iter(parts)
        return [ComplexTensor(next(rest), next(rest)) if pair else next(rest) for pair in pairs]

    return [part for v, pair in zip(values, pairs, strict=True) for part in ((v.re, v.im) if pair else (v,))], whole


def _never(size: Any) -> bool:
    return isinstance(size, int) and size == 0
