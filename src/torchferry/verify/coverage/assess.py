"""The coverage of a verdict, and what it lacks: weights, redrawn weights, outputs and inputs, branches, mutants, in this order.

What could make ordinary calls wrong is a finding, and refuses: a weight that is neither the model's nor noticed, an output
that was never compared, an input that was never varied. What no input was found for is told as not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from torchferry import eager
from torchferry.records import Case, Coverage, Fault, Finding, Trial
from torchferry.verify.arrays import Array
from torchferry.verify.coverage import branches as both_sides
from torchferry.verify.coverage import mutants as score
from torchferry.verify.coverage import outputs as compared
from torchferry.verify.coverage import reach
from torchferry.verify.coverage.difference import differing_weights
from torchferry.verify.coverage.lively import Redrawable, lively, redrawable
from torchferry.verify.coverage.mutations import mutants
from torchferry.verify.coverage.stored import stored
from torchferry.verify.coverage.unlike import Unlike, unlike
from torchferry.verify.coverage.weights import Weights, weights
from torchferry.verify.explain.findings import findings
from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.run.eager_trace import Tape
from torchferry.verify.run.intermediates import Inside, opened
from torchferry.verify.run.repeated_calls import Character
from torchferry.verify.trials.budget import LARGE
from torchferry.verify.trials.plans import Plan

FAILING = ("differ", "file-refused")
DRAWS = 2  # of redrawn weights; one for a large model
DRAWN_TRIALS = 5  # with each draw; one for a large model
ROUNDS = 3  # of further trials for mutants that nothing noticed
TOLD = 8  # names of what was not shown, of each kind


@dataclass(frozen=True, slots=True)
class Assessed:
    """What the trials have shown, what they lack, and the trials that were made on the way."""

    coverage: Coverage
    findings: tuple[Finding, ...] = ()
    judged: tuple[Judged, ...] = ()  # with the model's own weights
    redrawn: tuple[Trial, ...] = ()


@dataclass(slots=True)
class _Work:
    """What is known so far."""

    case: Case
    bench: Bench
    judged: list[Judged]
    habits: Character
    tape: Tape
    weights: Weights
    beside: list[Unlike]
    findings: list[Finding] = field(default_factory=list)
    redrawn: list[Judged] = field(default_factory=list)
    own: int = 0  # trials that were there before
    shown: Coverage = field(default_factory=Coverage)

    @property
    def agreeing(self) -> list[Judged]:
        return [j for j in self.judged if j.trial.outcome == "agree"]

    @property
    def failed(self) -> bool:
        return any(j.trial.outcome in FAILING for j in (*self.judged, *self.redrawn))

    @property
    def large(self) -> bool:
        return eager.weight_bytes(self.bench.sides.bound.module) > LARGE


def assess(case: Case, bench: Bench, judged: Sequence[Judged], habits: Character, tape: Tape) -> Assessed:
    """Return what these trials stand on."""
    found = weights(bench.sides)
    work = _Work(case, bench, list(judged), habits, tape, found, list(unlike(found)), own=len(judged))
    _count_weights(work)
    _weights(work)
    if not work.failed and work.agreeing and not any(bench.nature.random):
        which = redrawable(found, bench.sides.bound.module)
        _redrawn(work, which)
        if not work.failed:
            _inside(work, which)
    _outputs(work)
    extra = tuple(work.judged[work.own :])
    return Assessed(work.shown, tuple(work.findings), extra, tuple(j.trial for j in work.redrawn))


# --- weights ---------------------------------------------------------------------------------------


def _count_weights(work: _Work) -> None:
    exact = sum(f.exact for f in work.weights.found)
    counts = {"weights": len(work.weights.found) + len(work.weights.missing), "equal": exact}
    work.shown = replace(work.shown, **counts, computed=len(work.weights.found) - exact)


def _weights(work: _Work) -> None:
    """Tell of weights that are not the model's: the first thing said, whether trials fail or not."""
    if work.failed:
        work.findings += differing_weights(work.bench, work.weights, work.beside, work.judged)
        return
    changed = [u for u in work.beside if u.changed]
    if changed:
        work.findings.append(_told(work, changed[0], changed, _proof(work, changed[0])))
        return
    suspects = [s for s in work.weights.missing]
    if not suspects or not work.agreeing:
        return
    beside = {u.stored.name: u for u in work.beside}
    model = onnx.load(str(work.bench.sides.file.path), load_external_data=False)
    trials = sorted(work.agreeing, key=_numbers)[: 2 if work.large else score.MOST_TRIALS]
    left = reach.unreached(work.bench, model.graph, suspects, beside, trials)
    work.shown = replace(work.shown, reached=len(suspects) - len(left))
    lacking = [beside[n] for n in beside if n in left]
    if lacking:
        work.findings.append(_told(work, lacking[0], lacking, _proof(work, lacking[0])))
    others = [s.name for s in suspects if s.name in left and s.name not in beside]
    _not_shown(work, [f"`{n}`, which is not among the model's numbers" for n in others])


def _proof(work: _Work, one: Unlike) -> str:
    """Return a trial that feeds what differs, and does differ; it is kept among the trials. Empty where none does."""
    for plan in reach.feeding(work.bench.sides.bound, one, work.case.job.budget.seed):
        tried = _tried(work, plan)
        if tried is not None and tried.trial.outcome in FAILING:
            work.judged.append(tried)
            return f"{tried.trial.name}: {tried.trial.differences[0].words if tried.trial.differences else tried.trial.note}"
    return ""


def _tried(work: _Work, plan: Plan, bench: Bench | None = None) -> Judged | None:
    bench = bench or work.bench
    try:
        args = plan.args(bench.sides.bound)
    except (ValueError, RuntimeError):  # no such call can be made, or a number does not fit the input's dtype
        return None
    if work.case.job.onnx is not None and not bench.sides.declares(args):
        return None
    return judge(bench, plan, args)


def _told(work: _Work, one: Unlike, every: Sequence[Unlike], proof: str) -> Finding:
    facts = {
        "weight": one.stored.name,
        "near": one.near.name,
        "words": one.words,
        "proof": proof,
        "changed": one.changed,
        "others": [f"`{u.near.name}`: {u.words}" for u in every[1:TOLD]],
        "cured": 0,
    }
    return Finding("weights-differ", None, facts)


def _not_shown(work: _Work, words: Sequence[str]) -> None:
    work.shown = replace(work.shown, not_shown=(*work.shown.not_shown, *words[:TOLD]))


def _not_done(work: _Work, words: str) -> None:
    work.shown = replace(work.shown, not_done=(*work.shown.not_done, words))


# --- the same trials with redrawn weights ----------------------------------------------------------------


def _redrawn(work: _Work, which: Redrawable) -> None:
    if not which.groups:
        if work.weights.tensors:
            _not_done(work, f"no trial with redrawn weights: {which.why_not}")
        return
    for draw in range(1, (1 if work.large else DRAWS) + 1):
        with lively(work.bench, work.weights, which, draw) as bench:
            if isinstance(bench, str):
                _not_done(work, f"draw {draw} of weights: {bench}")
                continue
            for judged in _again(work, bench, draw):
                work.redrawn.append(judged)
            failing = [j for j in work.redrawn if j.trial.outcome in FAILING]
            if failing:
                work.findings += findings(work.case, bench, failing, work.habits, work.tape)
                break
    agree = [j for j in work.redrawn if j.trial.outcome == "agree"]
    work.shown = replace(work.shown, redrawn=len(agree))


def _again(work: _Work, bench: Bench, draw: int) -> Iterator[Judged]:
    """Yield the first plain trials that agreed, once more with redrawn weights."""
    plain = [j for j in work.agreeing if j.plan.values in PLAIN and j.plan.level == "all"]
    for judged in plain[: 1 if work.large else DRAWN_TRIALS]:
        plan = replace(judged.plan, name=f"redrawn weights {draw}, {judged.plan.title}")
        again = judge(bench, plan, judged.args)
        yield replace(again, trial=replace(again.trial, weights=draw))


PLAIN = ("example", "random", "given", "right-padded", "left-padded", "random-mask")


# --- outputs and inputs ------------------------------------------------------------------------------------


def _outputs(work: _Work) -> None:
    agreeing = [*work.agreeing, *(j for j in work.redrawn if j.trial.outcome == "agree")]
    if not agreeing or any(work.bench.nature.random):
        return
    seen = compared.watched(work.bench, agreeing, work.weights.seen.moves)
    work.shown = replace(work.shown, outputs=len(seen), varied=sum(w.varies or not w.moves for w in seen))
    if work.failed:
        return
    for one in seen:
        if not one.filled:
            work.findings.append(Finding("output-not-compared", None, {"output": one.name, "how": "empty", "trials": len(agreeing)}))
        elif one.moves and not one.varies:
            alive = work.shown.redrawn > 0 or not work.weights.tensors
            if alive:  # it stayed as it is whatever was tried: nobody can tell whether it could move
                _not_shown(work, [f"output `{one.name}`, which was the same in all trials"])
            else:
                facts = {"output": one.name, "how": "still", "trials": len(agreeing)}
                work.findings.append(Finding("output-not-compared", None, facts))
    for name, far in compared.lost_in_tolerance(work.bench, work.agreeing):
        facts = {"output": name, "how": "lost", "trials": len(agreeing), "far": far}
        work.findings.append(Finding("output-not-compared", None, facts))
    for name, times in compared.unvaried(work.bench, work.judged):
        work.findings.append(Finding("input-not-varied", None, {"input": name, "refused": times}))


# --- the file's inside: branches and mutants ----------------------------------------------------------------


def _inside(work: _Work, which: Redrawable) -> None:
    asked = work.case.job.budget.mutants
    if asked == 0:
        _not_done(work, "mutants: none were asked for")
    if work.large and not asked:
        _not_done(work, "branches and mutants: the file is large")
        return
    with opened(work.bench.sides) as inside:
        if isinstance(inside, Fault):
            _not_done(work, "branches and mutants: the file does not load with its values laid open")
            return
        example = inside.values(work.agreeing[0].args)
        if isinstance(example, Fault):
            return
        values = {**example, **work.bench.sides.feeds(work.agreeing[0].args)}
        held = {s.name: s.values() for s in stored(inside.model, Path(work.bench.sides.file.path).parent)}
        room = score.affordable(inside.model.graph, values, held)
        trials = sorted(work.agreeing, key=_numbers)[: max(1, min(score.MOST_TRIALS, room // 4))]
        _branches(work, inside, trials)
        plain = {n: v for n, v in values.items() if n not in held}
        every = mutants(inside.model.graph, plain, held, work.case.job.budget.seed)
        graph = inside.model.graph
    picked = score.sample(graph, every, room if asked is None else asked, work.case.job.budget.seed)
    if picked:
        _mutants(work, picked, trials, which)


def _numbers(judged: Judged) -> int:
    return sum(a.numel() for a in judged.args)


def _branches(work: _Work, inside: Inside, trials: Sequence[Judged]) -> None:
    seen = both_sides.Branches()
    bound = work.bench.sides.bound
    both_sides.in_eager(seen, bound.module, trials, bound.prefix)
    both_sides.in_file(seen, inside, trials)
    work.shown = replace(work.shown, sides=len(seen.sides), taken=sum(seen.sides.values()))
    _not_shown(work, list(seen.untaken))


def _mutants(work: _Work, picked: Sequence[score.Mutant], trials: Sequence[Judged], which: Redrawable) -> None:
    """Count the mutants that some trial notices; for those that none does, make further trials while that helps."""
    with score.opened(work.bench, picked, trials[0]) as flock:
        left = flock.left(work.bench, trials)
        for number in range(ROUNDS):
            if not left or work.failed:
                break
            more = list(_further(work, number))
            work.judged += more
            still = flock.left(work.bench, [j for j in more if j.trial.outcome == "agree"], left)
            if len(still) == len(left):
                break
            left = still
        survivors = [flock.mutants[n] for n in left]
        number = len(flock.mutants)
    if survivors and which.groups and work.shown.redrawn and not work.failed:
        survivors = _with_redrawn(work, survivors, which)
    work.shown = replace(work.shown, mutants=number, noticed=number - len(survivors))
    _not_shown(work, [f"`{m.label}` with {m.what}: no trial would notice" for m in survivors])


def _with_redrawn(work: _Work, survivors: Sequence[score.Mutant], which: Redrawable) -> list[score.Mutant]:
    """Return the mutants that the trials with redrawn weights do not notice either."""
    left = list(survivors)
    for draw in sorted({j.trial.weights for j in work.redrawn}):
        trials = [j for j in work.redrawn if j.trial.weights == draw and j.trial.outcome == "agree"]
        with lively(work.bench, work.weights, which, draw) as bench:
            if isinstance(bench, str) or not trials or not left:
                continue
            with score.opened(bench, left, trials[0]) as flock:
                left = [flock.mutants[n] for n in flock.left(bench, trials)]
    return left


def _further(work: _Work, number: int) -> Iterator[Judged]:
    """Yield further plain trials: other draws, at the example's sizes and at those of a trial that agreed."""
    seed = work.case.job.budget.seed + 501 + 10 * number
    sizes = [dict(j.plan.sizes) for j in work.agreeing if j.plan.sizes and j.plan.given is None]
    for step, chosen in enumerate([{}, *([sizes[(7 * number) % len(sizes)]] if sizes else [])]):
        found = _tried(work, Plan(chosen, "random", seed + step))
        if found is not None:
            yield found


Values = dict[str, Array]
