"""Door to torch's tracing: tensors without values (`torch._subclasses`), `make_fx`, and what operators are made of.

Relies on FakeTensor and FakeTensorMode, `torch._guards.detect_fake_mode`, `torch.fx.experimental.proxy_tensor.make_fx` and
`torch._dispatch.python.enable_python_dispatcher` (all since torch 2.1), on the tables of `torch._decomp`, the references in
`torch._refs.linalg`, and the module `torch._functorch.eager_transforms` behind torch.func.
Should they move: `torch.export.default_decompositions()` is the public side of the tables; of the rest there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torchferry.foreign.moved import relying_on

with relying_on("torch", "its fake tensors and its tracer"):
    from torch._decomp import core_aten_decompositions, decomposition_table
    from torch._dispatch.python import enable_python_dispatcher
    from torch._functorch import eager_transforms
    from torch._guards import detect_fake_mode
    from torch._refs import linalg as reference_linalg
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, is_fake
    from torch.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "LOGGERS",
    "FakeTensor",
    "FakeTensorMode",
    "core_aten_decompositions",
    "decomposition_table",
    "decompositions_of",
    "detect_fake_mode",
    "eager_transforms",
    "enable_python_dispatcher",
    "is_fake",
    "reference_linalg",
    "traced",
]

LOGGERS = ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")  # what a stand-in cannot do is logged here


def traced(function: Callable[..., Any], table: dict[Any, Any], *, symbolic: bool = False) -> Callable[..., Any]:
    """Return what traces a function over given tensors, into a graph of operators taken apart by a table.

    Tensors that it closes over, such as weights, need not be fake. `symbolic`: over real tensors, each size being a symbol.
    """
    mode = {"tracing_mode": "symbolic"} if symbolic else {}
    return make_fx(function, table, _allow_non_fake_inputs=True, **mode)


def decompositions_of(targets: Iterable[Any]) -> dict[Any, Callable[..., Any]]:
    """Return torch's own decompositions of operators, as far as it has them."""
    return {target: decomposition_table[target] for target in targets if target in decomposition_table}
