"""The stage: the file is run beside the eager model over sizes and values, and what differs is found, named and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from torchferry import eager
from torchferry.progress import Event, tell
from torchferry.records import Bound, Case, Fault, Finding, Guard, Step, Translated, Verified
from torchferry.verify.explain.by_size import by_size
from torchferry.verify.explain.findings import findings
from torchferry.verify.explain.optimiser_fault import blame_opening
from torchferry.verify.judge.model_traits import nature
from torchferry.verify.judge.tolerance import derive
from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.run.both_sides import Sides, open_sides
from torchferry.verify.run.eager_trace import Tape, record
from torchferry.verify.run.memory import WORKER_ROOM
from torchferry.verify.run.repeated_calls import Character, character
from torchferry.verify.trials.budget import LARGE, Purse
from torchferry.verify.trials.coupled import coupled
from torchferry.verify.trials.landmarks import in_file
from torchferry.verify.trials.plans import cost, example_sizes, plans
from torchferry.worker import Worker

ENOUGH = 2  # failing trials after which a large model is not tried further


def verify(case: Case) -> Step:
    """Return how the file compares with the eager model, and a finding for each way in which it differs."""
    bound, file = case.value("inputs"), _file(case)
    room = WORKER_ROOM + 4 * eager.weight_bytes(bound.module)
    with Worker(time_limit=case.job.budget.time_limit, memory_limit=room) as worker:
        sides = open_sides(bound, file, worker)
        if isinstance(sides, Fault):
            return Step("verify", fault=sides, findings=(_not_loaded(sides, file, worker),))
        return _verified(case, sides)


def _not_loaded(fault: Fault, file: Translated, worker: Worker) -> Finding:
    """Return why there is no session: the file, or what onnxruntime's own optimiser makes of it."""
    if (blamed := blame_opening(worker, file)) is None:
        return Finding("file-not-loaded", None, {"error": fault.text})
    facts = {"optimisers": list(blamed.optimisers), "error": fault.text, "cause": "optimiser", "stage": "onnxruntime's optimiser"}
    return Finding("wrong-only-when-optimised-by-onnxruntime", blamed.location, facts)


def _file(case: Case) -> Translated:
    """Return the file to compare: the translated one, or what a repair of the check stage made of it."""
    return replace(case.value("translate"), path=case.file)


def _verified(case: Case, sides: Sides) -> Step:
    laid = laid_out(case, sides)
    if isinstance(laid, Fault):
        return Step("verify", fault=laid)
    bench, habits, tape = laid
    judged = tuple(_trials(case, bench))
    verified = Verified(tuple(j.trial for j in judged), bench.allowed, _ranges(judged, bench.sizes))
    told = (*findings(case, bench, judged, habits, tape), *by_size(case, bench, judged))
    return Step("verify", verified, findings=told if verified.shown or verified.failed else (*told, _nothing_shown(verified)))


def laid_out(case: Case, sides: Sides) -> tuple[Bench, Character, Tape] | Fault:
    """Return what all trials have in common, how the model behaves, and what it did with the example; or what it raised."""
    bound: Bound = sides.bound
    used = eager.fresh(bound.module)
    tape = record(used, bound.args, prefix=bound.prefix)
    if tape.error is not None:
        return Fault.of(tape.error)
    habits = character(bound.module, used, tape.outputs, _calls(bound))
    kind = nature(bound.module, tape.notes, habits.random)
    lowered = "float32" if case.job.edits_for("capture", "prepare:float32-kernels") else None
    sizes = example_sizes(bound)
    links = coupled(sides, sizes) if case.job.onnx is not None else {}
    return Bench(sides, derive(tape.notes, lowered), kind, sizes, links), habits, tape


def _nothing_shown(verified: Verified) -> Finding:
    """Return that no trial speaks for the file, with what became of them."""
    counts = Counter(t.outcome for t in verified.trials)
    notes = [f"{t.name}: {t.note}" for t in verified.trials if t.note]
    return Finding("nothing-shown", None, {"outcomes": dict(counts), "notes": notes[:5]})


def _calls(bound: Bound) -> list[tuple[torch.Tensor, ...]]:
    """Return the calls by which the model's behaviour is told: the example, and another of the same sizes if eager takes it."""
    if eager.weight_bytes(bound.module) > LARGE:
        return [bound.args]
    try:
        other = bound.vary({}, "random", 1)
        eager.call(eager.fresh(bound.module), other)
    except Exception:  # no other call can be made, or the user's forward refuses it in its own way
        return [bound.args]
    return [bound.args, other]


def _trials(case: Case, bench: Bench) -> Iterator[Judged]:
    """Yield the trials that the budget has room for; those that no call can be made of do not count."""
    purse, bound, captured, failures = Purse(case), bench.sides.bound, case.value("capture"), 0
    doubts = tuple(Guard(f"Eq({f.facts['says']}, {f.facts['fixed']})", f.location) for f in case.findings("output-size-fixed"))
    bounds = in_file(Path(bench.sides.file.path)) if case.job.onnx is not None else ()
    for plan in plans(bound, (*doubts, *(captured.guards if captured else ())), case.job.budget.seed, bench.links, bounds):
        if plan.level != "all" and purse.large:  # a second session on a large file costs more than it tells
            continue
        if plan.given is None and purse.empty:
            return
        try:
            args = plan.args(bound)
        except ValueError:  # no such call can be made of this model
            continue
        if case.job.onnx is not None and not bench.sides.declares(args):  # a file from elsewhere promises what it declares
            continue
        if plan.given is None and not purse.affords(cost(args, bound)):
            continue
        with purse.paying():
            found = judge(bench, plan, args)
        tell(Event("tick", "verify", plan.title, found.trial.seconds, purse.number, case.job.budget.trials))
        yield found
        failures += found.trial.outcome in ("differ", "file-refused")
        if purse.large and failures >= ENOUGH:  # each costs seconds, and the point is made
            return


def _ranges(judged: tuple[Judged, ...], sizes: dict[str, int]) -> dict[str, tuple[int, int | None]]:
    """Return, for each dim, the smallest and largest size at which the file was seen to agree."""
    good = [j.trial.sizes for j in judged if j.trial.outcome not in ("differ", "file-refused", "eager-refused")]
    return {n: (min(g[n] for g in good), max(g[n] for g in good)) for n in sizes if good}
