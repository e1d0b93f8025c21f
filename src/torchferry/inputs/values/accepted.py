"""Draws that the model takes: where it refuses free ones, the freest that keep what holds of its example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from torchferry import eager
from torchferry.inputs.values.draws import candidates
from torchferry.inputs.values.vary import CallPlan

SEEDS = (1, 2)  # draws that must all be taken


def accepted(module: torch.nn.Module, plan: CallPlan) -> CallPlan:
    """Return a plan whose random calls the model takes, as far as that can be had; the same one where it already does.

    Inputs are looked at one at a time, the others as in the example. Where each alone is taken and all together are not,
    their rows belong together, and only whole rows of the example are drawn.
    """
    if plan.made is not None or _takes(module, plan):
        return plan
    settled = plan
    for i in range(len(plan.parts)):
        if not _alone(module, settled, i):
            settled = _drawn(settled, {i: _first(module, settled, i)})
    if _takes(module, settled):
        return settled
    refused = {i: "rows" for i, t in enumerate(plan.tensors) if t.dim()}
    together = _drawn(plan, refused)
    return together if _takes(module, together) else plan


def _first(module: torch.nn.Module, plan: CallPlan, i: int) -> str:
    """Return the freest draw of one input that the model takes, free ones again if it takes none."""
    for name in candidates(plan.tensors[i]):
        if _alone(module, _drawn(plan, {i: name}), i):
            return name
    return ""


def _drawn(plan: CallPlan, draws: dict[int, str]) -> CallPlan:
    return replace(plan, parts=tuple(replace(p, draw=draws.get(i, p.draw)) for i, p in enumerate(plan.parts)))


def _takes(module: torch.nn.Module, plan: CallPlan) -> bool:
    return all(_called(module, plan, range(len(plan.parts)), seed) for seed in SEEDS)


def _alone(module: torch.nn.Module, plan: CallPlan, i: int) -> bool:
    return all(_called(module, plan, (i,), seed) for seed in SEEDS)


def _called(module: torch.nn.Module, plan: CallPlan, inputs: Sequence[int], seed: int) -> bool:
    """Return whether the model takes a call in which these inputs are drawn, and the others are the example's."""
    try:
        made = plan.vary({}, "random", seed)
        call = tuple(m if i in inputs else t for i, (m, t) in enumerate(zip(made, plan.tensors, strict=True)))
        eager.call_on_made_input(eager.fresh(module), call)
    except Exception:  # a draw that cannot be made, or that the user's forward refuses in its own way
        return False
    return True
