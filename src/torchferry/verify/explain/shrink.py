"""A failing trial made smaller: each size that was moved is taken back towards the example's, by halves, while it still fails."""

from __future__ import annotations

from dataclasses import replace

from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.trials.coupled import together
from torchferry.verify.trials.plans import TrialPlan

MOST_RUNS = 24


def shrink(bench: Bench, failing: Judged) -> Judged:
    """Return a trial that fails in the same way with simpler values and smaller sizes; the trial itself if none does."""
    if failing.plan.given is not None:
        return failing
    smallest, runs = failing, 0
    for plan in _simpler(bench, failing):
        if runs >= MOST_RUNS:
            break
        runs += 1
        if (again := _still_fails(bench, plan, failing)) is not None:
            smallest = again
            break
    for name in dict(smallest.plan.sizes):
        failing_at, right_at = smallest.plan.sizes[name], bench.sizes.get(name, 1)
        while abs(failing_at - right_at) > 1 and runs < MOST_RUNS:
            runs, between = runs + 1, (failing_at + right_at) // 2
            plan = replace(smallest.plan, sizes={**smallest.plan.sizes, name: between})
            if (again := _still_fails(bench, plan, failing)) is None:
                right_at = between
            else:
                failing_at, smallest = between, again
    proven = smallest is failing or judge(bench, smallest.plan, smallest.args).trial.outcome == failing.trial.outcome
    return smallest if proven else failing


def _simpler(bench: Bench, failing: Judged) -> list[TrialPlan]:
    """Return plans that change less: without the unusual values, or with one size back at the example's."""
    plan = failing.plan
    plans = [replace(plan, values="random")] if plan.values != "random" and plan.sizes else []
    fewer = [{k: v for k, v in plan.sizes.items() if k != n} for n in plan.sizes] if len(plan.sizes) > 1 else []
    return plans + [replace(plan, sizes=sizes) for sizes in fewer]


def _still_fails(bench: Bench, plan: TrialPlan, failing: Judged) -> Judged | None:
    plan = replace(plan, sizes=together(plan.sizes, bench.links))
    try:
        again = judge(bench, plan, plan.args(bench.sides.bound), proven=0.0)  # proofs are made for the last one alone
    except ValueError:
        return None
    return again if again.trial.outcome == failing.trial.outcome else None
