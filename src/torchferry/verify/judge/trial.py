"""One trial: both sides run, their outputs are compared, and every innocent reason is looked at before it counts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from torchferry import ort
from torchferry.records import Difference, Fault, Outcome, Tolerance, Trial
from torchferry.verify.arrays import Array, array, is_float, wide
from torchferry.verify.judge.compare import compare, wrong
from torchferry.verify.judge.excuses.cut_off import cut_off
from torchferry.verify.judge.excuses.lowest_first import LowestFirst
from torchferry.verify.judge.excuses.padding import only_padding
from torchferry.verify.judge.excuses.rounding import ill_conditioned
from torchferry.verify.judge.excuses.tie_order import permuted, same_keys, tied
from torchferry.verify.judge.model_traits import Nature
from torchferry.verify.run.both_sides import Call, Sides
from torchferry.verify.run.eager_trace import record
from torchferry.verify.run.memory import little_memory
from torchferry.verify.trials.coupled import Links
from torchferry.verify.trials.plans import COUNTING, STRANGE, Plan, added_masks

# values at which a model with weights need not stay finite
ABSURD = ("huge", "denormal")  # they are there to show overflow where eager has none; rounding at 1e30 interests nobody
EXTREME = (*STRANGE, "scaled", "large", "large-negative", "large-positive", *COUNTING, "tiny", "huge", "denormal")


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial with the arrays it was judged by; `args` is None for one that could not be made."""

    plan: Plan
    trial: Trial
    args: Call = ()
    want: Sequence[Array] = ()
    got: Sequence[Array] = ()
    fault: Fault | None = None  # what the file, or eager, raised
    strange: bool = False  # it shows something, but with an input that the model need not take


@dataclass(frozen=True, slots=True)
class Bench:
    """What all trials have in common."""

    sides: Sides
    allowed: Tolerance
    nature: Nature
    sizes: dict[str, int] = field(default_factory=dict)  # of the example
    links: Links = field(default_factory=dict)  # sizes that a file from elsewhere names apart and that belong together
    home: Judged | None = None  # a plain trial in which the file is right, where the example is not one

    @property
    def right_sizes(self) -> Mapping[str, int]:
        """The sizes that the file is right at: those of the example, as far as that goes."""
        return self.home.trial.sizes if self.home is not None else self.sizes


def judge(bench: Bench, plan: Plan, args: Call) -> Judged:
    """Return the outcome of one trial."""
    began = time.perf_counter()
    judged = _judged(bench, plan, args)
    if plan.values == "big-ids" and bench.nature.learned and judged.trial.outcome in ("differ", "file-refused"):
        judged = _as(judged, "differ", "no table has so many rows", strange=True)
    return replace(judged, trial=replace(judged.trial, seconds=time.perf_counter() - began))


def _judged(bench: Bench, plan: Plan, args: Call) -> Judged:
    trial = Trial(plan.title, {**bench.sizes, **plan.sizes}, plan.values, plan.seed, "agree")
    with little_memory() if plan.values in COUNTING else nullcontext():
        want = bench.sides.eager(args)
    if isinstance(want, Fault):
        note = f"{want.type_name}: {_line(want.text)}"
        return Judged(plan, replace(trial, outcome="eager-refused", note=note), args, fault=want)
    got = bench.sides.run_at(plan.level, args)
    if isinstance(got, Fault):
        refusal = Difference("", "refused", f"{got.type_name}: {_line(ort.said(got.text))}", ratio=np.inf)
        trial = replace(trial, outcome="file-refused", differences=(refusal,), worst=np.inf)
        return Judged(plan, trial, args, want, fault=got)
    found, worst = differences(bench, want, got)
    trial = replace(trial, differences=found, worst=worst, max_abs=_largest(want, got))
    judged = Judged(plan, trial, args, want, got)
    if not found:
        return replace(judged, trial=replace(trial, outcome="random")) if any(bench.nature.random) else judged
    return _weigh(bench, judged)


def differences(bench: Bench, want: Sequence[Array], got: Sequence[Array]) -> tuple[tuple[Difference, ...], float]:
    """Return what differs, output by output, and the worst ratio to what is allowed."""
    names = bench.sides.bound.outputs
    if len(want) != len(got):
        words = f"{len(got)} outputs, expected {len(want)}"
        return (Difference("", "count", words, ratio=np.inf),), np.inf
    found, worst = [], 0.0
    for n, (w, g) in enumerate(zip(want, got, strict=True)):
        if bench.nature.random[n] and w.shape == g.shape and w.dtype == g.dtype:
            continue  # its values are drawn anew at every call
        difference, ratio = compare(names[n], w, g, bench.allowed)
        worst = max(worst, ratio)
        found += [difference] if difference else []
    return tuple(found), float(worst)


def _weigh(bench: Bench, judged: Judged) -> Judged:
    """Return a trial whose outputs differ with what the difference amounts to."""
    want, got, plan = list(judged.want), list(judged.got), judged.plan
    if any(d.what in ("count", "shape", "dtype") for d in judged.trial.differences):
        return _as(judged, "differ")
    if (note := cut_off(bench.sides, judged.args, lambda right: not differences(bench, right, got)[0])) is not None:
        return _as(judged, "eager-cut-off", note)
    if only_padding(bench.sides, bench.allowed, judged.args, want, got, weighs=bench.nature.weighs):
        return _as(judged, "padding-only", "the outputs differ only at padded positions")
    if _unlike_only_beyond(bench, plan, want, got):
        return _as(judged, "differ", "eager itself is not finite there", strange=True)
    if _rounding(bench, judged.args, want, got):
        return _as(judged, "ill-conditioned", "the file is as near to a float64 run as eager is")
    if (note := _tie(bench, judged.args, want, got)) is not None:
        harmless = bench.nature.learned or bench.nature.sorts_last or plan.values in STRANGE
        return _as(judged, "tie-order", note, strange=harmless)
    if plan.values in ABSURD and not _overflows(bench, plan, want, got):
        return _as(judged, "differ", "no model is fed such numbers, and the file stays finite", strange=True)
    return _as(judged, "differ", strange=plan.values in STRANGE and _need_not_take(bench, plan, judged.args, want, got))


def _as(judged: Judged, outcome: Outcome, note: str = "", *, strange: bool = False) -> Judged:
    """Return the trial with its outcome; one that no model need pass agrees as far as anybody can ask."""
    shown: Outcome = "beyond-range" if strange and outcome == "differ" else outcome
    return replace(judged, trial=replace(judged.trial, outcome=shown, note=note), strange=strange)


def _rounding(bench: Bench, args: Call, want: list[Array], got: list[Array]) -> bool:
    """Return whether rounding explains the difference."""
    kind = bench.nature
    flags = {"exact": kind.exact, "rounds": kind.rounds, "settled": kind.settled}
    return ill_conditioned(bench.sides.bound.module, args, want, got, **flags)


def _overflows(bench: Bench, plan: Plan, want: Sequence[Array], got: Sequence[Array]) -> bool:
    """Return whether a plain function stays finite in eager and not in the file.

    Squares of denormals vanish in float32; torch adds some sums up in float64, where they do not, and nobody relies on that.
    """
    if bench.nature.learned or bench.nature.complex or (plan.values == "denormal" and not bench.nature.exact):
        return False
    pairs = ((wide(w), wide(g)) for w, g in zip(want, got, strict=True) if is_float(w))
    return any(bool((np.isfinite(w) & ~np.isfinite(g)).any()) for w, g in pairs)


def _need_not_take(bench: Bench, plan: Plan, args: Call, want: Sequence[Array], got: Sequence[Array]) -> bool:
    """Return whether NaN or infinity in the inputs is not this model's business.

    It is where eager copes with NaN; where a plain function copes with infinity, so that none of its result is NaN, and
    the file does not; and where the input is one that is added to attention scores, in which minus infinity means "do not
    look".
    """
    if bench.nature.attends and plan.values == "nan":
        return True
    if _chooses_among_nothing(bench, args):
        return True
    if plan.values == "nan" and swallows_nan(bench, want, got):
        return False
    if plan.values == "nan":
        floats = [wide(w) for w in want if is_float(w)]
        return not floats or any(np.isnan(w).any() for w in floats)
    if plan.only in added_masks(bench.sides.bound):
        return False
    plain = not bench.nature.learned and not bench.nature.attends and not bench.nature.complex
    nans = [any(bool(np.isnan(wide(a)).any()) for a in side if is_float(a)) for side in (want, got)]
    return not (plain and nans == [False, True])


def _chooses_among_nothing(bench: Bench, args: Call) -> bool:
    """Return whether an order, or a largest, is asked of computed numbers that are not finite; of an input's own it may be."""
    if bench.nature.sorting is None:
        return False
    notes = record(bench.sides.bound.module, args, keep=True).notes
    keys = [wide(n.keys).ravel() for n in notes if n.keys is not None and is_float(n.keys)]
    given = [wide(array(a)).ravel() for a in args if a.is_floating_point()]
    return any(not np.isfinite(k).all() and not any(np.array_equal(k, g, equal_nan=True) for g in given) for k in keys)


def swallows_nan(bench: Bench, want: Sequence[Array], got: Sequence[Array]) -> bool:
    """Return whether a plain function's maximum passes NaN on in eager and passes over it in the file, and no more than that."""
    if bench.nature.learned or not bench.nature.maximises:
        return False
    for w, g in zip(want, got, strict=True):
        if w.shape != g.shape or not is_float(w):
            return False
        bad = wrong(w, g, bench.allowed)
        if (bad & ~(np.isnan(wide(w)) & ~np.isnan(wide(g)))).any():
            return False
    return True


def _unlike_only_beyond(bench: Bench, plan: Plan, want: list[Array], got: list[Array]) -> bool:
    """Return whether the sides differ only where eager is not finite, for values that a model with weights need not take."""
    if plan.values not in EXTREME or not bench.nature.learned:
        return False
    pairs = list(zip(want, got, strict=True))
    return all(is_float(w) and not (wrong(w, g, bench.allowed) & np.isfinite(wide(w))).any() for w, g in pairs)


def _tie(bench: Bench, args: Call, want: list[Array], got: list[Array]) -> str | None:
    """Return a word on the tie that explains the difference, or None."""
    if bench.nature.sorting is None:
        return None
    unlike = [(w, g) for w, g in zip(want, got, strict=True) if wrong(w, g, bench.allowed).any()]
    notes = record(bench.sides.bound.module, args, keep=True).notes
    if (note := tied(notes)) is None:
        return None
    explained = all(permuted(w, g) or same_keys(notes, w, g) for w, g in unlike) or _as_onnx_breaks_ties(bench, args, got)
    return f"equal keys come in another order at {note.location}" if explained else None


def _as_onnx_breaks_ties(bench: Bench, args: Call, got: list[Array]) -> bool:
    """Return whether the file gives what eager gives when of equal keys the lower index comes first."""
    with LowestFirst():
        ordered = bench.sides.eager(args)
    return not isinstance(ordered, Fault) and not differences(bench, ordered, got)[0]


def _largest(want: Sequence[Array], got: Sequence[Array]) -> float:
    apart = 0.0
    for w, g in zip(want, got, strict=False):
        if w.shape == g.shape and w.dtype == g.dtype and is_float(w) and w.size:
            with np.errstate(invalid="ignore"):
                apart = max(apart, float(np.nanmax(np.nan_to_num(np.abs(wide(w) - wide(g)), nan=0.0, posinf=0.0))))
    return apart


def _line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:300]
