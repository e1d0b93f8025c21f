"""A scan over as many steps as a value says: taken to be one or more, since torch asks whether there are none.

The graph's scan goes round no times as well, so nothing depends on it; only torch's question needs an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchferry.foreign.torch_control_flow import scans_called_by
from torchferry.foreign.torch_dynamo import scans_seen_by
from torchferry.foreign.torch_shapes import assume, is_unbacked
from torchferry.foreign.torch_trees import tree_leaves


@contextmanager
def patch(module: Any) -> Iterator[None]:
    """Let a scan take tensors whose length comes from a value: where it is called, and where dynamo reads its body."""
    with scans_called_by(_called), scans_seen_by(lambda steps: _some(steps.size()[0])):
        yield


def _called(scan: Callable[..., Any], combine_fn: Any, init: Any, xs: Any, *, dim: int = 0, **options: Any) -> Any:
    for leaf in tree_leaves(xs):
        if isinstance(leaf, torch.Tensor):
            _some(leaf.shape[dim])
    return scan(combine_fn, init, xs, dim=dim, **options)


def _some(length: Any) -> None:
    if is_unbacked(length):
        assume(length >= 1)
