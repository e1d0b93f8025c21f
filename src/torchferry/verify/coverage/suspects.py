"""Weights that are not the model's: which are changed, which no trial would notice, and which make trials fail.

What is found is proven by running: a trial that feeds what differs; or the failing trials once more, with the model's own
numbers in the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchferry.records import FAILING, SHOWING, Fault
from torchferry.records.findings import WeightsDiffer
from torchferry.records.kinds_of_values import ORDINARY
from torchferry.verify.coverage.folded_unlike import folded_unlike
from torchferry.verify.coverage.folds import norms
from torchferry.verify.coverage.ground import TOLD, Ground
from torchferry.verify.coverage.mutants import MOST_TRIALS
from torchferry.verify.coverage.noticed_rows import feeding, unreached
from torchferry.verify.coverage.rewritten import rewrite
from torchferry.verify.coverage.unlike import Unlike
from torchferry.verify.judge.trial import Bench, Judged, differences, judge
from torchferry.verify.run.both_sides import session_options

ASKED = 4  # failing trials that are run again with the model's numbers
FEW = 2  # trials of a large model for which a second session is run
NEAR = 100.0  # times what is allowed: what is further off with the model's own numbers is not asked for an excuse


def weigh(ground: Ground) -> Ground:
    """Return the ground with its weights counted, and those told of that cannot be the model's."""
    exact = sum(f.exact for f in ground.weights.found)
    total = len(ground.weights.found) + len(ground.weights.missing)
    ground = ground.count(weights=total, equal=exact, computed=len(ground.weights.found) - exact)
    if ground.failed:
        return _to_blame(ground)
    changed = [u for u in ground.beside if u.changed]
    return _proven(ground, changed) if changed else _reached(ground)


def _to_blame(ground: Ground) -> Ground:
    """Return the ground with other weights as the cause of failing trials, where they are it beyond doubt."""
    failing = [j for j in ground.judged if j.trial.outcome == "differ"]
    ordinary = [j for j in failing if j.trial.values in ORDINARY]  # others may be further off by rounding than a proof follows
    failing = (ordinary or failing)[:ASKED]
    changed = [u for u in ground.beside if u.changed]
    if not failing or not ground.weights.missing:
        return ground
    blamed, cured = list(ground.beside), _cured(ground, failing, ground.beside)
    if cured < len(failing) and (folded := _folded(ground)):
        blamed, cured = folded, _cured(ground, failing, folded)
    if cured < len(failing) and not changed:
        return ground
    first = changed[0] if changed and cured < len(failing) else blamed[0]
    worst = failing[0].trial
    proof = f"{worst.name}: {worst.differences[0].words}" if worst.differences else worst.name
    return ground.finds(_told(first, blamed, proof, cured))


def _folded(ground: Ground) -> list[Unlike]:
    """Return the weights that are not found as what they must be where normalisations are folded in, with all others."""
    bound = ground.bench.sides.bound
    graph = ground.bench.sides.model.graph
    found = list(folded_unlike(ground.weights, graph, norms(bound.module, bound.prefix)))
    known = {u.stored.name for u in found}
    return [*found, *(u for u in ground.beside if u.stored.name not in known)] if found else []


def _cured(ground: Ground, failing: Sequence[Judged], blamed: Sequence[Unlike]) -> int:
    """Return how many failing trials agree once the model's own numbers stand in the file."""
    if not blamed:
        return 0
    sides, numbers = ground.bench.sides, {}
    for one in blamed:
        if (values := one.near.made(ground.weights.tensors, {})) is not None:
            numbers[one.stored.graph, one.stored.name] = values
    with tempfile.TemporaryDirectory(prefix=".torchferry-", dir=ground.room) as folder:
        path, model = rewrite(sides, numbers, Path(folder))
        key = sides.worker.open(path, **session_options(sides.file.settings))
        if isinstance(key, Fault):
            return 0
        mended = replace(sides, file=replace(sides.file, path=path), session=key, model=model)
        cured = sum(_agrees(replace(ground.bench, sides=mended, followed=[]), j) for j in failing)
        sides.worker.close(key)
    return cured


def _agrees(bench: Bench, failing: Judged) -> bool:
    """Return whether a trial that fails agrees on another bench: to the last bits, or as excuses that are proven there say."""
    got = bench.sides.run(failing.args)
    if not isinstance(got, Fault) and not differences(bench, failing.want, got)[0]:
        return True
    return judge(bench, failing.plan, failing.args, proven=NEAR).trial.outcome in SHOWING


def _proven(ground: Ground, differing: Sequence[Unlike]) -> Ground:
    """Return the ground with weights that differ, and with a trial that feeds what does where one shows it."""
    for plan in feeding(ground.bench.sides.bound, differing[0], ground.seed):
        tried = ground.tried(plan)
        if tried is not None and tried.trial.outcome in FAILING:
            words = tried.trial.differences[0].words if tried.trial.differences else tried.trial.note
            return ground.plus(tried).finds(_told(differing[0], differing, f"{tried.trial.name}: {words}"))
    return ground.finds(_told(differing[0], differing))


def _reached(ground: Ground) -> Ground:
    """Return the ground with the weights that are not the model's numbers, and whether a trial would notice others."""
    missing = ground.weights.missing
    if not missing or not ground.agreeing:
        return ground
    beside = {u.stored.name: u for u in ground.beside}
    trials = ground.cheapest[: FEW if ground.large else MOST_TRIALS]
    left = unreached(ground.bench, ground.bench.sides.model.graph, missing, beside, trials, ground.room)
    ground = ground.count(reached=sum(s.name not in left for s in missing))
    others = [s.name for s in missing if s.name in left and s.name not in beside]
    ground = ground.lacks(f"`{n}`, which is not among the model's numbers and which no trial hangs on" for n in others)
    lacking = [u for u in ground.beside if u.stored.name in left]
    return _proven(ground, lacking) if lacking else ground


def _told(one: Unlike, every: Sequence[Unlike], proof: str = "", cured: int = 0) -> WeightsDiffer:
    others = [f"{u.name}: {u.words}" for u in every if u is not one][:TOLD]
    return WeightsDiffer(one.stored.name, one.name, one.words, proof, one.changed, tuple(others), cured)
