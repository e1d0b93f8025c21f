"""The first plain trials once more, with redrawn weights on both sides: judged, told and explained like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchferry.records import FAILING
from torchferry.records.kinds_of_values import ORDINARY
from torchferry.verify.coverage.ground import Ground
from torchferry.verify.coverage.lively import Redrawable, lively
from torchferry.verify.explain.findings import findings
from torchferry.verify.judge.trial import Bench, Judged, judge

DRAWS = 2  # one for a large model
SHARE = 12  # of the trials asked for, one in so many is made again with each draw; one for a large model
PLAIN = ORDINARY | {"right-padded", "left-padded", "random-mask"}


def redraw(ground: Ground, which: Redrawable) -> Ground:
    """Return the ground with trials in which the weights were redrawn; none after the first that fails."""
    if not which.groups:
        return ground.leaves_out(f"trials with redrawn weights: {which.why_not}") if ground.weights.tensors else ground
    for draw in range(1, (1 if ground.large else DRAWS) + 1):
        with lively(ground.bench, ground.weights, which, draw, ground.room) as bench:
            if isinstance(bench, str):
                ground = ground.leaves_out(f"draw {draw} of weights: {bench}")
                continue
            judged = tuple(_again(ground, bench, draw))
            ground = replace(ground, redrawn=(*ground.redrawn, *judged))
            if failing := [j for j in judged if j.trial.outcome in FAILING]:
                ground = ground.finds(*findings(ground.case, bench, failing, ground.habits, ground.trace))
                break
    return ground.count(redrawn=sum(j.trial.outcome == "agree" for j in ground.redrawn))


def _again(ground: Ground, bench: Bench, draw: int) -> Iterator[Judged]:
    plain = [j for j in ground.agreeing if j.plan.values in PLAIN and j.plan.level == "all"]
    for judged in plain[: 1 if ground.large else max(1, ground.case.job.budget.trials // SHARE)]:
        plan = replace(judged.plan, name=f"redrawn weights {draw}, {judged.plan.title}")
        again = judge(bench, plan, judged.args)
        yield replace(again, trial=replace(again.trial, weights=draw))
