"""A failing trial made smaller: each moving size is taken down as far as the failure lasts."""

from __future__ import annotations

from dataclasses import replace

from torchferry.verify.coupled import together
from torchferry.verify.judge import Bench, Judged, judge
from torchferry.verify.trials import Plan

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
        for size in _smaller(smallest.plan.sizes[name], bench.sizes.get(name, 1)):
            runs += 1
            plan = replace(smallest.plan, sizes={name: size, **{k: v for k, v in smallest.plan.sizes.items() if k != name}})
            again = _still_fails(bench, plan, failing) if runs < MOST_RUNS else None
            if again is None:
                break
            smallest = again
    return smallest


def _simpler(bench: Bench, failing: Judged) -> list[Plan]:
    """Return plans that change less: without the unusual values, or with one size back at the example's."""
    plan = failing.plan
    plans = [replace(plan, values="random")] if plan.values != "random" and plan.sizes else []
    fewer = [{k: v for k, v in plan.sizes.items() if k != n} for n in plan.sizes] if len(plan.sizes) > 1 else []
    return plans + [replace(plan, sizes=sizes) for sizes in fewer]


def _smaller(size: int, example: int) -> list[int]:
    """Return sizes on the way from a failing one towards the example's, nearest to the example last tried."""
    step = 1 if size > example else -1
    return [s for s in (size - step * d for d in (1, 2, 3)) if (s - example) * step > 0 and s > 0]


def _still_fails(bench: Bench, plan: Plan, failing: Judged) -> Judged | None:
    plan = replace(plan, sizes=together(plan.sizes, bench.links))
    try:
        again = judge(bench, plan, plan.args(bench.sides.bound))
    except ValueError:
        return None
    return again if again.trial.outcome == failing.trial.outcome else None
