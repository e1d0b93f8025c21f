"""What the trials reach inside the file: the sides of its branches, and how many of its mutants they notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from torchferry.records import Fault
from torchferry.verify.coverage import branches
from torchferry.verify.coverage import mutants as score
from torchferry.verify.coverage.ground import Ground
from torchferry.verify.coverage.lively import Redrawable, lively
from torchferry.verify.coverage.mutations import mutants
from torchferry.verify.coverage.nodes import moving
from torchferry.verify.coverage.schemata import Mutant
from torchferry.verify.coverage.stored import stored
from torchferry.verify.judge.trial import Judged
from torchferry.verify.run.intermediates import opened
from torchferry.verify.trials.plans import TrialPlan

OFTENER = 3  # times as many trials are asked for branches as for mutants: each is asked once
SHARE = 20  # for so many trials that were asked for, one round of further ones is made for mutants that nothing noticed


def look_inside(ground: Ground, which: Redrawable) -> Ground:
    """Return the ground with branches and mutants counted; not for a large file, unless mutants were asked for."""
    asked, sides = ground.case.job.budget.mutants, ground.bench.sides
    if ground.large and not asked:
        return ground.leaves_out("branches and mutants: the file is large, `Budget(mutants=...)` asks for them")
    with opened(sides) as inside:
        values = inside if isinstance(inside, Fault) else inside.values(ground.agreeing[0].args)
        if isinstance(inside, Fault) or isinstance(values, Fault):
            return ground.leaves_out("branches and mutants: the file does not run with its values laid open")
        graph, values = inside.model.graph, {**values, **sides.feeds(ground.agreeing[0].args)}
        held = {s.name: s.values() for s in stored(inside.model, Path(sides.file.path).parent)}
        room, times = score.affordable(graph, values, held)
        trials = ground.mixed(times)
        seen, many = branches.Branches(), ground.mixed(OFTENER * times)
        branches.in_eager(seen, sides.bound.module, many, sides.bound.prefix)
        branches.in_file(seen, inside, many)
        values_inside, moved = moving(inside, trials)
    ground = ground.count(values=values_inside, moved=moved)
    ground = ground.count(sides=len(seen.sides), taken=sum(seen.sides.values())).lacks(seen.untaken)
    every = mutants(inside.model, {n: v for n, v in values.items() if n not in held}, held, ground.seed)
    picked = score.sample(graph, every, room if asked is None else asked, ground.seed)
    if not picked:
        return ground.leaves_out("mutants: none were asked for") if asked == 0 else ground
    return _scored(ground, picked, trials, which)


def _scored(ground: Ground, picked: Sequence[Mutant], trials: Sequence[Judged], which: Redrawable) -> Ground:
    """Return the ground with the mutants that some trial notices; for the others further trials are made while that helps."""
    with score.opened(ground.bench, picked, trials[0], ground.room) as flock:
        left, number = flock.left(ground.bench, trials), len(flock.mutants)
        for step in range(ground.case.job.budget.trials // SHARE):
            more = tuple(_further(ground, step)) if left else ()
            still = flock.left(ground.bench, [j for j in more if j.trial.outcome == "agree"], left)
            ground, helped, left = ground.plus(*more), len(still) < len(left), still
            if not helped or ground.failed:
                break
        survivors = [flock.mutants[n] for n in left]
    if survivors and ground.shown.redrawn and not ground.failed:
        survivors = _with_redrawn(ground, survivors, which)
    ground = ground.count(mutants=number, noticed=number - len(survivors))
    return ground.lacks(_survived(ground, m) for m in survivors)


def _survived(ground: Ground, mutant: Mutant) -> str:
    place = ground.bench.sides.file.provenance.get(mutant.node)
    at = f" at {place.brief}" if place is not None and place.line else ""
    return f"`{mutant.label}`{at}, {mutant.what}: no trial would notice"


def _further(ground: Ground, step: int) -> Iterator[Judged]:
    """Yield further plain trials: other draws, at the example's sizes and at those of a trial that agreed."""
    sizes = [dict(j.plan.sizes) for j in ground.agreeing if j.plan.sizes and j.plan.given is None]
    for number, chosen in enumerate([{}, *([sizes[7 * step % len(sizes)]] if sizes else [])]):
        found = ground.tried(TrialPlan(chosen, "random", ground.seed + 501 + 10 * step + number))
        if found is not None:
            yield found


def _with_redrawn(ground: Ground, survivors: Sequence[Mutant], which: Redrawable) -> list[Mutant]:
    """Return the mutants that the trials with redrawn weights do not notice either."""
    left = list(survivors)
    for draw in sorted({j.trial.weights for j in ground.redrawn}):
        trials = [j for j in ground.redrawn if j.trial.weights == draw and j.trial.outcome == "agree"]
        if not trials or not left:
            continue
        with lively(ground.bench, ground.weights, which, draw, ground.room) as bench:
            if isinstance(bench, str):
                continue
            with score.opened(bench, left, trials[0], ground.room) as flock:
                left = [flock.mutants[n] for n in flock.left(bench, trials)]
    return left
