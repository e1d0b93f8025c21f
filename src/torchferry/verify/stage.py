"""The stage: the file is run beside the eager model over sizes and values, and what differs is found, named and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx
import torch

from torchferry import eager
from torchferry.edits.capture import PrepareFloat32Kernels
from torchferry.foreign import onnxruntime_messages
from torchferry.progress import Event, tell
from torchferry.records import FAILING, Bound, Case, Fault, Finding, Guard, Location, Step, Translated, Verified, ranges_shown
from torchferry.records.findings import FileNotLoaded, MostlyExcused, NothingShown, OutputSizeFixed, RefusedWhenOptimised
from torchferry.records.kinds_of_values import ORDINARY
from torchferry.verify.arrays import arrays
from torchferry.verify.coverage.assess import assess
from torchferry.verify.explain.by_size import by_size
from torchferry.verify.explain.findings import findings
from torchferry.verify.explain.optimiser_fault import blame_opening
from torchferry.verify.judge.bias import biased
from torchferry.verify.judge.compare import ENOUGH_ROWS, spread
from torchferry.verify.judge.model_traits import traits
from torchferry.verify.judge.tolerance import columns, from_call_to_call, loosest, measure
from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.run.both_sides import BothSides, open_sides
from torchferry.verify.run.eager_trace import EagerTrace, record
from torchferry.verify.run.memory import WORKER_ROOM
from torchferry.verify.run.repeated_calls import Character, character
from torchferry.verify.trials.budget import LARGE, TrialBudget
from torchferry.verify.trials.constants import loops
from torchferry.verify.trials.coupled import coupled
from torchferry.verify.trials.directed import directed
from torchferry.verify.trials.landmarks import in_file
from torchferry.verify.trials.plans import TrialPlan, each_once, example_sizes, in_turns, plans
from torchferry.verify.trials.tries import Tries, all_finite
from torchferry.verify.trials.work import measured
from torchferry.worker import Worker

MOSTLY = 0.5  # of a trial's numbers, and of the trials: what is excused beyond that leaves too little to go by
PROVEN = 3  # failing trials after which no proof is made any more that some others fail by rounding alone
BY_MUCH = 100.0  # times what is allowed: far beyond what rounding does; what fails by less has as many proofs of its own
ENOUGH = 2  # failing trials after which a large model is not tried further


def verify(case: Case) -> Step:
    """Return how the file compares with the eager model, and a finding for each way in which it differs."""
    bound, file = case.answer(Bound), _file(case)
    room = WORKER_ROOM + 4 * eager.weight_bytes(bound.module)
    with Worker(time_limit=case.job.budget.time_limit, memory_limit=room) as worker:
        sides = open_sides(bound, file, worker)
        if isinstance(sides, Fault):
            return Step("verify", fault=sides, findings=(_not_loaded(sides, file, worker),))
        return _verified(case, sides)


def _not_loaded(fault: Fault, file: Translated, worker: Worker) -> FileNotLoaded | RefusedWhenOptimised:
    """Return why there is no session: the file, or what onnxruntime's own optimiser makes of it."""
    if (blamed := blame_opening(worker, file)) is None:
        named = onnxruntime_messages.node(fault.text)
        return FileNotLoaded(fault.text, location=Location(onnx_node=named[0]) if named else None)
    return RefusedWhenOptimised(blamed.optimisers, fault.text, location=blamed.location)


def _file(case: Case) -> Translated:
    """Return the file to compare: the translated one, or what a repair of the check stage made of it."""
    made = case.answer(Translated)
    return replace(made, path=case.file or made.path)


def _verified(case: Case, sides: BothSides) -> Step:
    laid = laid_out(case, sides)
    if isinstance(laid, Fault):
        return Step("verify", fault=laid)
    bench, habits, trace = laid
    graph = sides.model.graph
    budget = TrialBudget(case, measured(sides.bound, trace, bench.sizes), loops(graph))
    tries = Tries(sides.bound, budget, finite=all_finite(trace.outputs), links=bench.links, domain=case.job.domain)
    judged = tuple(_trials(case, bench, tries, graph))
    shown = assess(case, bench, judged, habits, trace)
    judged = (*judged, *shown.judged)
    trials = (*(j.trial for j in judged), *shown.redrawn)
    verified = Verified(trials, loosest(bench.allowed), ranges_shown(trials), shown.coverage)
    told = (*shown.findings, *findings(case, bench, judged, habits, trace), *by_size(case, bench, judged))
    leaning = biased(bench, judged) if not verified.failed else ()
    return Step("verify", verified, findings=(*told, *leaning, *_hardly_shown(verified)), notes=budget.notes)


def laid_out(case: Case, sides: BothSides) -> tuple[Bench, Character, EagerTrace] | Fault:
    """Return what all trials have in common, how the model behaves, and what it did with the example; or what it raised."""
    bound: Bound = sides.bound
    used = eager.fresh(bound.module)
    trace = record(used, bound.args, prefix=bound.prefix)
    if trace.error is not None:
        return Fault.of(trace.error)
    calls = _calls(bound)
    habits = character(bound.module, used, trace.outputs, calls)
    lowered = "float32" if case.job.edits_for(PrepareFloat32Kernels) else None
    sizes = example_sizes(bound)
    links = coupled(sides, sizes) if case.job.onnx is not None else {}
    kind = traits(bound.module, trace.notes, habits.random)
    asked = case.job.tolerance
    allowed = (asked,) * len(trace.outputs) if asked else measure(bound.module, calls, kind.coarsest, lowered)
    few = any(o.numel() // max(1, o.shape[-1] if o.dim() else 1) < ENOUGH_ROWS for o in trace.outputs)
    several = [arrays(o) for o in _several(bound, len(calls) > 1)] if few else []
    if asked is None:
        allowed = tuple(replace(a, columns=c) for a, c in zip(allowed, columns(several) or [()] * len(allowed), strict=True))
    example = arrays(trace.outputs)
    varied = from_call_to_call(several, example)
    usual = tuple(max(float(np.max(spread(o))), v) for o, v in zip(example, varied, strict=True))
    return Bench(sides, allowed, kind, sizes, usual, links), habits, trace


def _hardly_shown(verified: Verified) -> tuple[Finding, ...]:
    """Return that no trial speaks for the file, or that most of what ordinary ones compare is excused; () where neither is so."""
    notes = tuple(f"{t.name}: {t.note}" for t in verified.trials if t.note)[:5]
    if not verified.shown and not verified.failed:
        return (NothingShown(Counter(t.outcome for t in verified.trials), notes),)
    ordinary = [t for t in verified.trials if t.values in ORDINARY and t.outcome != "eager-refused"]
    excused = [t for t in ordinary if t.excused > MOSTLY]
    if len(excused) <= MOSTLY * len(ordinary):
        return ()
    return (MostlyExcused(len(excused), len(ordinary), notes),)


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


def _several(bound: Bound, cheap: bool) -> list[tuple[torch.Tensor, ...]]:
    """Return what eager gives for a few calls of the example's sizes: more rows than one call has."""
    found = []
    for seed in range(2, 2 + 2 * ENOUGH_ROWS) if cheap else ():
        try:
            found.append(eager.call(eager.fresh(bound.module), bound.vary({}, "random", seed)))
        except Exception:  # no such call can be made, or the user's forward refuses it in its own way
            continue
    return found


def _trials(case: Case, bench: Bench, tries: Tries, graph: onnx.GraphProto) -> Iterator[Judged]:
    """Yield the trials that the budget has room for; those that no call can be made of do not count."""
    bound, budget, failures, narrow = bench.sides.bound, tries.budget, 0, 0
    for plan in _plans(case, bench, tries, graph):
        if plan.level != "all" and budget.large:  # a second session on a large file costs more than it tells
            continue
        if budget.late:
            return
        if plan.given is None and (budget.empty(directed=plan.directed) or not budget.affords(plan.sizes)):
            continue
        try:
            args = plan.args(bound)
        except ValueError:  # no such call can be made of this model
            continue
        if case.job.onnx is not None and not bench.sides.declares(args):  # a file from elsewhere promises what it declares
            continue
        budget.pay(plan.sizes, directed=plan.directed)
        proven = np.inf if failures < PROVEN else BY_MUCH if narrow < PROVEN else 0.0
        found = judge(bench, plan, args, proven=proven)
        tell(Event("tick", "verify", plan.title, found.trial.seconds, budget.number, budget.most))
        searched = plan.directed and plan.given is not None  # no name makes it again
        yield replace(found, trial=replace(found.trial, call=args)) if searched else found
        failures += found.trial.outcome in FAILING
        narrow += found.trial.outcome in FAILING and found.trial.worst <= BY_MUCH
        if budget.large and failures >= ENOUGH:  # each costs seconds, and the point is made
            return


def _plans(case: Case, bench: Bench, tries: Tries, graph: onnx.GraphProto) -> Iterator[TrialPlan]:
    """Yield the trials to come: ordinary ones, and in turns with them those directed at something in the model or the file."""
    captured, seed = case.value("capture"), case.job.budget.seed
    doubts = tuple(Guard(f"Eq({f.says}, {f.fixed})", f.location) for f in case.findings(OutputSizeFixed))
    guards = (*doubts, *(captured.guards if captured else ()))
    bounds = in_file(graph) if case.job.onnx is not None else ()
    ordinary = plans(bench.sides.bound, guards, seed, bench.links, bounds)
    return each_once(in_turns((ordinary, directed(tries, guards, seed, graph))))
