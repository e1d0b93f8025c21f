"""torch's scan as a plain loop, for eager runs: without dynamo, torch hands back what it carries and stacks in one flat list."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from torchferry.foreign.torch_control_flow import compiled_scan, run_scans_by
from torchferry.foreign.torch_trees import tree_map, tree_unflatten

_here = ContextVar("plain_scan", default=False)  # another thread may be capturing a scan meanwhile
_lock = threading.Lock()
_users: list[object] = []


@contextmanager
def plain_scan() -> Iterator[None]:
    """Let scan go round in Python for the block, in this thread."""
    token = _here.set(True)
    with _lock:
        _users.append(token)
        run_scans_by(_run)
    try:
        yield
    finally:
        with _lock:
            _users.remove(token)
            run_scans_by(_run if _users else compiled_scan)
        _here.reset(token)


def _run(run: Any, combine: functools.partial[Any], init: list[torch.Tensor], xs: list[torch.Tensor]) -> Any:
    """Return what is carried out of the last round, and what the rounds made, stacked; each in the user's own structure."""
    if not _here.get() or torch.compiler.is_dynamo_compiling():
        return compiled_scan(run, combine, init, xs)
    given = combine.keywords
    carry, made = tree_unflatten(init, given["spec_init"]), []
    for step in range(xs[0].shape[0]):
        carry, one = given["combine_fn"](carry, tree_unflatten([x[step] for x in xs], given["spec_xs"]))
        made.append(one)
    return carry, tree_map(lambda *each: torch.stack(each), *made)
