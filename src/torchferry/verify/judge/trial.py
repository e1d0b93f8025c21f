"""One trial: both sides run, their outputs are compared element by element, and every excuse is put to its proof."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from torchferry.foreign import onnxruntime as ort
from torchferry.foreign.onnxruntime_messages import arena_refuses
from torchferry.records import Difference, Fault, Outcome, Tolerance, Trial
from torchferry.records.kinds_of_values import COUNTING
from torchferry.verify.arrays import Array, is_float, wide
from torchferry.verify.judge.compare import compare, wrong
from torchferry.verify.judge.excuses import CHEAP, EXCUSES
from torchferry.verify.judge.excuses.beyond_range import NOT_ASKED_FOR, agrees_without_strange
from torchferry.verify.judge.excuses.excuse import Excuse, Plea, Proof
from torchferry.verify.judge.excuses.rounding_noise import nudged
from torchferry.verify.judge.model_traits import Traits
from torchferry.verify.run.both_sides import BothSides, Call
from torchferry.verify.run.memory import little_memory
from torchferry.verify.run.replay import replays
from torchferry.verify.trials.coupled import Links
from torchferry.verify.trials.plans import TrialPlan

# where several excuses share a trial, the one that says least for the file gives it its name
WEAKEST_FIRST: tuple[Outcome, ...] = (
    "eager-cut-off",
    "beyond-range",
    "undetermined",
    "padding-only",
    "tie-order",
    "ill-conditioned",
)
NUDGED = 8  # runs of eager with its roundings moved, where the file's outputs have other shapes
# these proofs hold the file against something, rounding, the arithmetic or eager's own picks; others: a number does not count
COMPARING: tuple[Outcome, ...] = ("ill-conditioned", "eager-cut-off", "tie-order")


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial with the arrays it was judged by; `args` is None for one that could not be made."""

    plan: TrialPlan
    trial: Trial
    args: Call = ()
    want: Sequence[Array] = ()
    got: Sequence[Array] = ()
    fault: Fault | None = None  # what the file, or eager, raised
    proof: Proof | None = None  # of the excuse that gave the trial its outcome


@dataclass(frozen=True, slots=True)
class Bench:
    """What all trials have in common."""

    sides: BothSides
    allowed: tuple[Tolerance, ...]  # for each of eager's outputs
    traits: Traits
    sizes: dict[str, int] = field(default_factory=dict)  # of the example
    usual: tuple[float, ...] = ()  # the spread of each output at the example
    links: Links = field(default_factory=dict)  # sizes that a file from elsewhere names apart and that belong together
    followed: list[str] = field(default_factory=list)  # trials in which the file was followed step by step, as they come
    masks: dict[Any, tuple[frozenset[int], int]] = field(default_factory=dict)  # what inputs are known to hide, as readings
    home: Judged | None = None  # a plain trial in which the file is right, where the example is not one

    @property
    def right_sizes(self) -> Mapping[str, int]:
        """The sizes that the file is right at: those of the example, as far as that goes."""
        return self.home.trial.sizes if self.home is not None else self.sizes


def judge(bench: Bench, plan: TrialPlan, args: Call, *, proven: float = np.inf) -> Judged:
    """Return the outcome of one trial; costly proofs are made for what differs by less than so many times what is allowed."""
    began = time.perf_counter()
    judged = _judged(bench, plan, args, proven)
    return replace(judged, trial=replace(judged.trial, seconds=time.perf_counter() - began))


def _judged(bench: Bench, plan: TrialPlan, args: Call, proven: float) -> Judged:
    trial = Trial(plan.title, {**bench.sizes, **plan.sizes}, plan.values, plan.seed, "agree")
    counting = plan.values in COUNTING  # either side may ask for all memory then: one after the other
    with little_memory() if counting else nullcontext():
        want, got = bench.sides.side_by_side(args) if plan.level == "all" and not counting else (bench.sides.eager(args), None)
    if isinstance(want, Fault):
        note = f"{want.type_name}: {_line(want.text)}"
        return Judged(plan, replace(trial, outcome="eager-refused", note=note), args, fault=want)
    if got is None:
        got = bench.sides.run_at(plan.level, args)
    if isinstance(got, Fault) and arena_refuses(got.text):
        return Judged(plan, replace(trial, outcome="too-large", note=_line(ort.said(got.text))), args, want, fault=got)
    if isinstance(got, Fault):
        refusal = Difference("", "refused", f"{got.type_name}: {_line(ort.said(got.text))}", ratio=np.inf)
        trial = replace(trial, outcome="file-refused", differences=(refusal,), worst=np.inf)
        return Judged(plan, trial, args, want, fault=got)
    found, worst = differences(bench, want, got)
    trial = replace(trial, differences=found, worst=worst, max_abs=_largest(want, got))
    judged = Judged(plan, trial, args, want, got)
    if not found:
        return replace(judged, trial=replace(trial, outcome="random")) if any(bench.traits.random) else judged
    if any(d.what in ("count", "shape", "dtype") for d in found):
        sizes_alone = not any(d.what in ("count", "dtype") for d in found)  # neither hangs on a last bit, as a shape may
        why = _of_a_size_that_hangs_on_a_last_bit(bench, args, got) if worst <= proven and sizes_alone else None
        if why is not None:
            return replace(judged, trial=replace(trial, outcome="ill-conditioned", note=why))
        if sizes_alone and agrees_without_strange(bench, plan, args):
            return replace(judged, trial=replace(trial, outcome="beyond-range", note=NOT_ASKED_FOR))
        return replace(judged, trial=replace(trial, outcome="differ"))
    return _excused(bench, judged, EXCUSES if worst <= proven else CHEAP)


def differences(bench: Bench, want: Sequence[Array], got: Sequence[Array]) -> tuple[tuple[Difference, ...], float]:
    """Return what differs, output by output, and the worst ratio to what is allowed."""
    names = bench.sides.bound.outputs
    if len(want) != len(got):
        words = f"{len(got)} outputs, expected {len(want)}"
        return (Difference("", "count", words, ratio=np.inf),), np.inf
    found, worst = [], 0.0
    for n, (w, g) in enumerate(zip(want, got, strict=True)):
        if bench.traits.random[n] and w.shape == g.shape and w.dtype == g.dtype:
            continue  # its values are drawn anew at every call
        difference, ratio = compare(names[n], w, g, bench.allowed[n])
        worst = max(worst, ratio)
        found += [difference] if difference else []
    return tuple(found), float(worst)


def _of_a_size_that_hangs_on_a_last_bit(bench: Bench, args: Call, got: Sequence[Array]) -> str | None:
    """Return what shows that outputs of other shapes are rounding, and nothing but rounding; None where nothing does."""
    runs = (nudged(bench.sides.bound.module, args, seed) for seed in range(NUDGED))
    if any([r.shape for r in run] == [g.shape for g in got] and not differences(bench, run, got)[0] for run in runs):
        return "eager itself gives that shape, and those numbers, when its roundings are moved"
    for replayed in replays(bench.sides, args):
        if not differences(bench, replayed.eager, replayed.outputs)[0] and not differences(bench, replayed.own, got)[0]:
            return "from eager's own steps the file gives eager's shape, and its numbers"
    return None


def _excused(bench: Bench, judged: Judged, excuses: Sequence[Excuse]) -> Judged:
    """Return a trial whose outputs differ with what is left of the difference when every excuse has had its say."""
    sides = list(zip(judged.want, judged.got, bench.allowed, bench.traits.random, strict=True))
    left = [np.zeros(w.shape, bool) if drawn else wrong(w, g, a) for w, g, a, drawn in sides]
    elements = sum(x.size for x in left)
    granted: list[Proof] = []
    excused = 0
    for excuse in excuses:
        proof = excuse.prove(Plea(bench, judged.plan, judged.args, judged.want, judged.got, left))
        if proof is None or not any((e & x).any() for e, x in zip(proof.elements, left, strict=True)):
            continue
        granted.append(proof)
        if proof.outcome not in COMPARING:
            excused += sum(int((e & x).sum()) for e, x in zip(proof.elements, left, strict=True))
        left = [x & ~e for e, x in zip(proof.elements, left, strict=True)]
        if not any(x.any() for x in left):
            break
    if any(x.any() for x in left):
        return replace(judged, trial=replace(judged.trial, outcome="differ"))
    proof = min(granted, key=lambda p: WEAKEST_FIRST.index(p.outcome))
    trial = replace(judged.trial, outcome=proof.outcome, note=proof.note, excused=excused / max(1, elements))
    return replace(judged, trial=trial, proof=proof)


def _largest(want: Sequence[Array], got: Sequence[Array]) -> float:
    apart = 0.0
    for w, g in zip(want, got, strict=False):
        if w.shape == g.shape and w.dtype == g.dtype and is_float(w) and w.size:
            with np.errstate(invalid="ignore"):
                apart = max(apart, float(np.nanmax(np.nan_to_num(np.abs(wide(w) - wide(g)), nan=0.0, posinf=0.0))))
    return apart


def _line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:300]
