"""The settings under which torch traces a model, or a captured program once more, so that its sizes stay free.

Sizes of 0 and 1 are not set apart. And the two sides of a torch.cond may give tensors of different sizes: torch works out the
strides of the joined tensor from those of both sides, and gives up where a size may be 0 or 1. A graph has no strides, so a
tensor in plain order stands for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental import _config as shape_config
from torch.fx.experimental.symbolic_shapes import SymIntEqByExpr, has_free_unbacked_symbols

from torchferry.eager import one_at_a_time


@contextmanager
def free_sizes() -> Iterator[None]:
    """Let torch trace with free sizes for the block."""
    import torch._higher_order_ops.cond  # noqa: F401

    home: Any = sys.modules["torch._higher_order_ops.cond"]  # the package has a function of the same name
    with one_at_a_time, shape_config.patch(backed_size_oblivious=True):
        original = home._merge_output
        home._merge_output = lambda a, b, mode: _merged(original, a, b, mode)
        try:
            yield
        finally:
            home._merge_output = original


def _merged(original: Any, a: Any, b: Any, mode: Any) -> Any:
    """Return what stands for the outputs of both sides."""
    pending = mode.shape_env.pending_fresh_unbacked_symbols if mode.shape_env is not None else []
    before = len(pending)
    try:
        return original(a, b, mode)
    except RuntimeError as error:
        if "stride" not in str(error) or not (isinstance(a, FakeTensor) and isinstance(b, FakeTensor)):
            raise
    del pending[before:]  # sizes that torch made up for a tensor that did not come about
    sizes = [_joined(s, t, mode) for s, t in zip(a.shape, b.shape, strict=True)]
    with mode:
        return torch.empty(sizes, dtype=a.dtype, device=a.device)


def _joined(one: Any, other: Any, mode: Any) -> Any:
    """Return a size that both sides have, or a new one that stands for either."""
    unbacked = any(isinstance(s, torch.SymInt) and has_free_unbacked_symbols(s) for s in (one, other))
    if not unbacked and SymIntEqByExpr(one) == SymIntEqByExpr(other):
        return one
    size = mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)
    return size
