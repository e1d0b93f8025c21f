"""Calls of eager alone, before a trial is made of them: whether it takes them, and which ways it goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torchferry import eager
from torchferry.records import Bound
from torchferry.verify.run.decisions import Decision, Key, WatchedCall, watch
from torchferry.verify.run.memory import little_memory
from torchferry.verify.trials.budget import TrialBudget
from torchferry.verify.trials.coupled import Links, together
from torchferry.verify.trials.plans import TrialPlan


@dataclass(slots=True)
class Tries:
    """Eager, called on trials to come; what it costs is paid from the budget of directed trials."""

    bound: Bound
    budget: TrialBudget
    finite: bool = True  # the example's outputs are: then an overflow at made-up values is nobody's business
    decisions: dict[Key, Decision] = field(default_factory=dict)  # all that were met so far, with all sides taken
    module: torch.nn.Module = field(init=False)  # a copy, put back as it was after each call
    state: eager.SavedState = field(init=False)  # which it is put back to
    links: Links = field(default_factory=dict)  # sizes that a file from elsewhere names apart and that belong together
    domain: Any = None  # the values that the caller says there are: ranges by input, or a function that makes all calls

    def __post_init__(self) -> None:
        self.module = eager.fresh(self.bound.module)
        self.state = eager.SavedState(self.module)

    def takes(self, plan: TrialPlan, *, finite: bool = True) -> bool:
        """Return whether eager takes a call, and stays finite with it where that is asked."""
        seen = self.look(plan)
        if seen is None:
            return False
        return not (finite and self.finite) or all_finite(seen.outputs)

    def linked(self, plan: TrialPlan) -> TrialPlan:
        """Return a plan with the sizes that belong together made equal."""
        return replace(plan, sizes=together(plan.sizes, self.links))

    def look(self, plan: TrialPlan) -> WatchedCall | None:
        """Return what eager does with a call, or None where it refuses it or none can be made."""
        plan = self.linked(plan)
        if self.budget.empty(directed=True) or not self.budget.affords(plan.sizes):
            return None
        try:
            args = plan.args(self.bound)
        except ValueError:  # no such call can be made of this model
            return None
        self.budget.pay(plan.sizes, directed=True, trial=False)
        return self.called(args)

    @property
    def free(self) -> bool:
        """Whether calls may be made in other ways than the caller's own."""
        return not callable(self.domain)

    def called(self, args: tuple[torch.Tensor, ...]) -> WatchedCall | None:
        """Return what eager does with some tensors, or None where it, or the caller's domain, has no place for them."""
        if not self._within_domain(args):
            return None
        try:
            with little_memory(), eager.kept(self.state), eager.on_made_input(self.module):
                seen = watch(self.module, args)
        except Exception:  # the user's forward may refuse an input in any way it likes
            return None
        self.remember(seen.decisions)
        return seen

    def _within_domain(self, args: tuple[torch.Tensor, ...]) -> bool:
        spans = self.domain if isinstance(self.domain, Mapping) else {}
        pairs = [(a, spans[s.name]) for a, s in zip(args, self.bound.signature.inputs, strict=True) if s.name in spans]
        return all(bool(((a >= low) & (a <= high)).all()) for a, (low, high) in pairs)

    def remember(self, decisions: Mapping[Key, Decision]) -> None:
        """Add the sides that a call took to those known."""
        for key, decision in decisions.items():
            known = self.decisions.setdefault(key, decision)
            if known is not decision:
                known.sides |= decision.sides
                known.inputs |= decision.inputs
                known.length, known.last = max(known.length, decision.length), max(known.last, decision.last)


def all_finite(outputs: tuple[torch.Tensor, ...]) -> bool:
    """Return whether a call's outputs are finite numbers."""
    floats = [o for o in outputs if o.is_floating_point() and not o.is_nested]
    return all(bool(o.isfinite().all()) for o in floats)
