"""A scan over as many steps as a value says: taken to be one or more, since torch asks whether there are none.

The graph's scan goes round no times as well, so nothing depends on it; only torch's question needs an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.utils import get_fake_value
from torch._dynamo.variables.higher_order_ops import ScanHigherOrderVariable
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from torchferry.capture.patches.replace import replaced


@contextmanager
def patch(module: Any) -> Iterator[None]:
    """Let a scan take tensors whose length comes from a value: where it is called, and where dynamo reads its body."""
    scan, inner = torch._higher_order_ops.scan, ScanHigherOrderVariable._call_function

    def outside(combine_fn: Any, init: Any, xs: Any, *, dim: int = 0, **options: Any) -> Any:
        for leaf in pytree.tree_leaves(xs):
            if isinstance(leaf, torch.Tensor):
                _some(leaf.shape[dim])
        return scan(combine_fn, init, xs, dim=dim, **options)

    def inside(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        for step in args[2].unpack_var_sequence(tx) if len(args) > 2 else ():
            _some(get_fake_value(step.as_proxy().node, tx).size()[0])
        return inner(self, tx, args, kwargs)

    with (
        replaced(torch._higher_order_ops, {"scan": outside}),
        replaced(ScanHigherOrderVariable, {"_call_function": inside}),
    ):
        yield


def _some(length: Any) -> None:
    if isinstance(length, torch.SymInt) and free_unbacked_symbols(length):
        torch._check(length >= 1)
