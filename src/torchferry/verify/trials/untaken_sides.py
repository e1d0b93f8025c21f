"""Inputs that take eager where no draw has: each comparison's other side, each choice never made, by following its gradient.

A detector that sees nothing, an expert that nobody is sent to, a clip that never bites agree with anything. What is compared is
a function of the inputs, so its gradient says how to move them; steps are as long as a straight line to the other side would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from torchferry import eager
from torchferry.verify.run.decisions import Decision, Key, watch
from torchferry.verify.trials.budget import WORK
from torchferry.verify.trials.plans import TrialPlan
from torchferry.verify.trials.tries import Tries, all_finite

STEPS = 16  # calls of eager with gradients, for one side
TARGETS = 24
DEAR = 3.0  # a call with its gradient, in calls without
SHARE = 0.25  # of the work for directed trials


@dataclass(frozen=True, slots=True)
class UntakenSide:
    """A side of a decision that was never taken."""

    key: Key
    side: str


def reached(tries: Tries, seed: int) -> Iterator[TrialPlan]:
    """Yield calls that take a side which no call has taken so far, one for each side that could be reached."""
    floats = [a.is_floating_point() for a in tries.bound.args]
    left = SHARE * WORK / (DEAR * STEPS * tries.budget.work.example)  # searches, each of which may take all its steps
    for target in _targets(tries) if any(floats) else ():
        if target.side in tries.decisions[target.key].sides or tries.budget.empty(directed=True) or left < 1:
            continue
        left -= 2  # from two starts
        for start in (TrialPlan({}, "random", seed + 1), TrialPlan({}, "example", seed, given=tries.bound.args)):
            found = _climb(tries, target, start.args(tries.bound))
            if found is not None:
                yield at_a_side(target.key, target.side, found, seed)
                break


def at_a_side(key: Key, side: str, args: tuple[torch.Tensor, ...], seed: int) -> TrialPlan:
    """Return the trial of a call that a search has found for a side of a decision."""
    name, why = f"values=reached, {key.words}: {side}", f"{key.place.file}:{key.place.line}"
    return TrialPlan({}, "reached", seed, given=args, name=name, why=why)


def _targets(tries: Tries) -> list[UntakenSide]:
    """Return the sides never taken of decisions that hang on the inputs, those with most sides missing last."""
    found = []
    for decision in tries.decisions.values():
        if decision.kind in ("compare", "clip") and not decision.whole:
            found += [UntakenSide(decision.key, s) for s in ("above", "below") if s not in decision.sides]
    for decision in tries.decisions.values():
        if decision.kind == "pick":
            found += [UntakenSide(decision.key, str(k)) for k in range(decision.length) if str(k) not in decision.sides]
    return found[:TARGETS]


def _climb(tries: Tries, target: UntakenSide, start: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
    """Return inputs that take a side, or None where following the gradient does not lead there."""
    at = tuple(a.detach().clone() for a in start)
    for _ in range(STEPS):
        tries.budget.pay({}, directed=True, trial=False)
        leaves = tuple(a.requires_grad_() if a.is_floating_point() else a for a in at)
        try:
            with eager.kept(tries.state), eager.on_made_input(tries.module):
                seen = watch(tries.module, leaves, grad=True)
                decision = seen.decisions.get(target.key)
                if decision is None:
                    return None
                if target.side in decision.sides:
                    done = tuple(a.detach() for a in leaves)
                    checked = tries.called(done)  # without gradients, as a trial runs it
                    return done if checked is not None and (not tries.finite or all_finite(checked.outputs)) else None
                step = _step(decision, target, [a for a in leaves if a.requires_grad])
        except Exception:  # no gradient through this model, or an input on the way that it refuses
            return None
        if step is None:
            return None
        moved = iter(step)
        at = tuple((a.detach() + next(moved)).to(a.dtype) if a.requires_grad else a for a in leaves)
    return None


def _step(decision: Decision, target: UntakenSide, leaves: list[torch.Tensor]) -> list[torch.Tensor] | None:
    """Return how to move the inputs: straight to the other side if the margin were a plane, but no further than is sensible."""
    if decision.margin is None:
        return None
    margin = _worst(decision, target)
    gradients = torch.autograd.grad(margin, leaves, allow_unused=True)
    slopes = [torch.zeros_like(a) if g is None else g.nan_to_num(0.0, 0.0, 0.0) for g, a in zip(gradients, leaves, strict=True)]
    steepness = sum(float(s.double().pow(2).sum()) for s in slopes)
    if not steepness > 0:
        return None
    gap = -float(margin)  # positive: how much is missing
    size = sum(float(a.detach().double().pow(2).sum()) for a in leaves) ** 0.5
    length = min(1.2 * gap / steepness**0.5 + 1e-6, 2 * size + 1.0)
    return [s * (length / steepness**0.5) for s in slopes]


def _worst(decision: Decision, target: UntakenSide) -> torch.Tensor:
    """Return the margin that must become positive for the side to be taken, of the element that is nearest to it."""
    margin = decision.margin
    assert margin is not None
    if decision.kind != "pick":
        return margin.max() if target.side == "above" else (-margin).max()
    chosen = margin[:, int(target.side)]
    others = margin.clone()
    others[:, int(target.side)] = -torch.inf
    return (chosen - others.max(-1).values).max()
