"""Door to torch's operators that take functions: scan, while_loop and cond, in `torch._higher_order_ops`.

Relies on `scan` and `scan_op` (since torch 2.6) and on how scan runs in eager (`_maybe_compile_and_run_fn`, called with a
partial whose keywords are `combine_fn`, `spec_init` and `spec_xs`), on `while_loop`, and on how cond joins the tensors of its
two sides (`_merge_output`, of both tensors and the fake mode). torch.cond alone is public.
Should they move: torch documents scan and while_loop as prototypes that will come to `torch` itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchferry.foreign.moved import relying_on
from torchferry.foreign.replaced import replaced

SCAN, WHILE_LOOP = "torch._higher_order_ops.scan", "torch._higher_order_ops.while_loop"  # as written into a user's function

with relying_on("torch", "its loops and branches"):
    from torch._higher_order_ops.scan import scan, scan_op

    # by name: the package has functions of the same names
    _scan_home: Any = importlib.import_module("torch._higher_order_ops.scan")
    _cond_home: Any = importlib.import_module("torch._higher_order_ops.cond")
    compiled_scan: Callable[..., Any] = _scan_home._maybe_compile_and_run_fn
    _merge_output = _cond_home._merge_output
    _package = torch._higher_order_ops
    for _name in (SCAN, WHILE_LOOP):
        getattr(_package, _name.rpartition(".")[2])

__all__ = ["SCAN", "WHILE_LOOP", "branches_merged_by", "compiled_scan", "run_scans_by", "scan", "scan_op", "scans_called_by"]


def run_scans_by(run: Callable[..., Any]) -> None:
    """Let scan run by another function from now on; `compiled_scan` is torch's own."""
    _scan_home._maybe_compile_and_run_fn = run


def scans_called_by(call: Callable[..., Any]) -> AbstractContextManager[None]:
    """Return a context in which `call(scan, *arguments)` is what a call of scan comes to."""
    original = _package.scan

    def called(*args: Any, **kwargs: Any) -> Any:
        return call(original, *args, **kwargs)

    return replaced(_package, {"scan": called})


def branches_merged_by(merge: Callable[..., Any]) -> AbstractContextManager[None]:
    """Return a context in which `merge(torch's own, tensor, other tensor, mode)` joins what the sides of a cond give."""
    original = _cond_home._merge_output
    return replaced(_cond_home, {_merge_output.__name__: lambda a, b, mode: merge(original, a, b, mode)})
