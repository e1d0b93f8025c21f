"""The settings under which torch traces a model, or a captured program once more, so that its sizes stay free.

Sizes of 0 and 1 are not set apart. And the two sides of a torch.cond may give tensors of different sizes: torch works out the
strides of the joined tensor from those of both sides, and gives up where a size may be 0 or 1. A graph has no strides, so a
tensor in plain order stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchferry.eager import one_at_a_time
from torchferry.foreign.torch_control_flow import branches_merged_by
from torchferry.foreign.torch_shapes import assume, is_unbacked, same_expression, zero_and_one_as_others
from torchferry.foreign.torch_tracing import FakeTensor


@contextmanager
def free_sizes() -> Iterator[None]:
    """Let torch trace with free sizes for the block."""
    with one_at_a_time, zero_and_one_as_others(), branches_merged_by(_merged):
        yield


def _merged(original: Any, a: Any, b: Any, mode: Any) -> Any:
    """Return what stands for the outputs of both sides."""
    pending = mode.shape_env.pending_fresh_unbacked_symbols if mode.shape_env is not None else []
    before = len(pending)
    try:
        return original(a, b, mode)
    except RuntimeError:  # of all that can be merged, torch works out sizes and strides alone
        if not _differ_in_sizes_alone(a, b):
            raise
    del pending[before:]  # sizes that torch made up for a tensor that did not come about
    sizes = [_joined(s, t, mode) for s, t in zip(a.shape, b.shape, strict=True)]
    with mode:
        return torch.empty(sizes, dtype=a.dtype, device=a.device)


def _differ_in_sizes_alone(a: Any, b: Any) -> bool:
    """Say whether two stand-ins have one dtype, device, rank and offset: what torch asks of both sides before it merges them."""
    return (
        isinstance(a, FakeTensor)
        and isinstance(b, FakeTensor)
        and (a.dtype, a.device, a.layout, a.dim(), a.is_conj()) == (b.dtype, b.device, b.layout, b.dim(), b.is_conj())
        and bool(a.storage_offset() == b.storage_offset())
    )


def _joined(one: Any, other: Any, mode: Any) -> Any:
    """Return a size that both sides have, or a new one that stands for either."""
    if not (is_unbacked(one) or is_unbacked(other)) and same_expression(one, other):
        return one
    size = mode.shape_env.create_unbacked_symint()
    assume(size >= 0)
    return size
