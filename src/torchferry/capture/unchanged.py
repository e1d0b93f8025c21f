"""Whether a model still computes the same, to the last bit, under rewrites that rest on a precondition which only a run can show.

Tried at the examples' sizes and a little above; each rewrite states its precondition in its own file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import torch

from torchferry import eager
from torchferry.capture.rewrites.sites import applied
from torchferry.capture.rewrites.syntax_tree import CannotRewrite
from torchferry.records import Bound
from torchferry.records.sites import Site

# right only if a condition spares work and does no more, if what is set is not read, or if each number comes once
LOSSY = {("branch", "always"), ("ternary", "always"), ("exit", "drop"), ("store", "drop"), ("for", "items")}
MORE = (0, 1, 2, 3)  # so that a size is met on both sides of most conditions, `n % 4` among them


def check(bound: Bound, sites: Iterable[Site]) -> None:
    """Raise CannotRewrite if rewrites whose precondition must be shown give other results than the model's own code."""
    chosen = [s for s in sites if (s.kind, s.how) in LOSSY]
    if not chosen:
        return
    tried = list(_inputs(bound))
    wanted = [_outputs(bound, args) for args in tried]
    with applied(bound.module, chosen):
        given = [_outputs(bound, args) for args in tried]
    if any(w is not None and (g is None or not same(w, g)) for w, g in zip(wanted, given, strict=True)):
        raise CannotRewrite("rewritten so, something else comes out")


def _inputs(bound: Bound) -> Iterable[tuple[Any, ...]]:
    yield from bound.examples
    for more in MORE:
        with contextlib.suppress(ValueError, RuntimeError):  # a size outside the declared range is not to be tried
            yield bound.vary({n: s + more for n, s in bound.example_sizes.items()}, "random", 0) if more else bound.args


def _outputs(bound: Bound, args: tuple[Any, ...]) -> Any:
    try:
        return eager.call(eager.fresh(bound.module), args)
    except Exception:  # sizes that the model does not take, whatever it says about them
        return None


def same(wanted: Any, given: Any, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Say whether two runs gave the same numbers: to the last bit, for runs of the same operators."""
    return all(
        w.shape == g.shape and torch.allclose(w, g, rtol=rtol, atol=atol, equal_nan=True)
        for w, g in zip(wanted, given, strict=True)
    )
