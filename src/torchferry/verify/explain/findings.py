"""Judged trials -> findings: one for each way in which the file is not the model, with the place and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchferry.records import FAILING, Case, Finding
from torchferry.records.findings import (
    Blame,
    DiffersBeyondRange,
    EagerCutOff,
    FileRefuses,
    NamesSwapped,
    NanSwallowed,
    OutputDiffers,
    PaddingOnly,
    SeenTrial,
    SizeBaked,
    TieOrder,
    WrongWhenOptimised,
)
from torchferry.records.kinds_of_values import SIMPLEST
from torchferry.verify.explain import misnamed
from torchferry.verify.explain.behaviour import behaviour
from torchferry.verify.explain.locate import locate
from torchferry.verify.explain.optimiser_fault import blame_runtime
from torchferry.verify.explain.shrink import shrink
from torchferry.verify.explain.source_lines import text
from torchferry.verify.explain.stage_at_fault import stage_of
from torchferry.verify.judge.excuses.beyond_range import swallows_nan
from torchferry.verify.judge.model_traits import takes_maximum
from torchferry.verify.judge.tolerance import loosest
from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.run.eager_trace import EagerTrace
from torchferry.verify.run.repeated_calls import Character

SEEDS = 3  # more trials at sizes that are under suspicion


def findings(case: Case, bench: Bench, judged: Sequence[Judged], habits: Character, trace: EagerTrace) -> tuple[Finding, ...]:
    """Return what the trials showed, and how the model behaves when called again."""
    found: list[Finding] = [*behaviour(bench, habits, trace)]
    bench = replace(bench, home=_home(judged, bench))
    wrong = [j for j in judged if j.trial.outcome in FAILING]
    for failing in _one_of_each(wrong, bench):
        found.append(_culprit(case, bench, failing, judged, trace))
    found += [PaddingOnly(seen(j, bench)) for j in [j for j in judged if j.trial.outcome == "padding-only"][:1]]
    found += [EagerCutOff(seen(j, bench)) for j in [j for j in judged if j.trial.outcome == "eager-cut-off"][:1]]
    tied = [j for j in judged if j.trial.outcome == "tie-order" and j.proof is not None and not j.proof.harmless]
    found += [TieOrder(seen(j, bench), location=j.proof.place) for j in tied[:1] if j.proof is not None]
    strange = [j for j in judged if j.trial.outcome == "beyond-range"]
    swallowed = [j for j in strange if j.trial.values == "nan" and swallows_nan(bench, j.want, j.got)]
    peak = next((n.location for n in trace.notes if takes_maximum(n)), None)
    found += [NanSwallowed(seen(j, bench), location=peak) for j in swallowed[:1]]
    found += [DiffersBeyondRange(seen(j, bench)) for j in strange[:1] if not swallowed]
    return tuple(found)


def _home(judged: Sequence[Judged], bench: Bench) -> Judged | None:
    """Return a plain trial with a batch of one that agrees, where none at the example's sizes does.

    An example with a batch of one is widened before it is bound, so the file may have been made for another size than ours.
    Other sizes of one do not count: at them much looks right that is not (a resized picture of one pixel).
    """
    ordinary = [j for j in judged if misnamed.plain(j) and j.plan.level == "all"]
    if any(j.trial.outcome != "differ" for j in ordinary if dict(j.trial.sizes) == bench.sizes):
        return None
    inner = {s for spec in bench.sides.bound.signature.inputs for s in spec.shape[1:]}
    moved = ({n: s for n, s in j.plan.sizes.items() if s != bench.sizes[n]} for j in ordinary)
    ones = [j for j, sizes in zip(ordinary, moved, strict=True) if set(sizes.values()) == {1} and not inner & set(sizes)]
    return next((j for j in ones if j.trial.outcome == "agree"), None)


def _one_of_each(wrong: Sequence[Judged], bench: Bench) -> list[Judged]:
    """Return the simplest failing trial of each class: at the example's own sizes, and at others."""
    classes: dict[str, list[Judged]] = {}
    for failing in wrong:
        resized = any(failing.trial.sizes.get(n) != s for n, s in bench.right_sizes.items())
        classes.setdefault("sizes" if resized else "values", []).append(failing)
    if "values" in classes and any(misnamed.plain(j) for j in classes["values"]):
        classes.pop("sizes", None)  # wrong already without another size
    return [min(group, key=_weight) for group in classes.values()]


def _weight(failing: Judged) -> tuple[int, int, int]:
    """Order failing trials by how simple they are: plain values, few sizes changed, small ones."""
    plain = 0 if failing.trial.values in SIMPLEST else 1
    return plain, len(failing.plan.sizes), sum(failing.trial.sizes.values())


def _culprit(case: Case, bench: Bench, failing: Judged, judged: Sequence[Judged], trace: EagerTrace) -> Finding:
    failing = shrink(bench, failing)
    told = seen(failing, bench)
    blame = Blame(failing=tuple(j.trial.name for j in judged if j.trial.outcome in FAILING)[:8])
    refused = failing.trial.outcome == "file-refused"
    if not refused and (blamed := blame_runtime(bench, failing)) is not None:
        told = replace(told, blame=replace(blame, stage="onnxruntime's optimiser", cause="optimiser"))
        return WrongWhenOptimised(told, blamed.optimisers, blamed.value, location=blamed.location)
    if told.what == "count":  # another model's file: there is no place to look for
        return OutputDiffers(replace(told, blame=blame))
    captured = case.value("capture")
    culprit = locate(bench, failing, captured.guards if captured else ())
    if misnamed.plain(failing) and (names := misnamed.misnamed(bench, failing)) is not None:
        place = culprit.location if culprit else None
        return NamesSwapped(replace(told, blame=blame), names.what, names.names, location=place)
    if culprit is None:
        told = replace(told, blame=replace(blame, cause="unknown"))
        return FileRefuses(told) if refused else OutputDiffers(told)
    place = culprit.location
    blame = replace(blame, cause=culprit.cause, guard=culprit.guard, code=text(place.file, place.line))
    blame = replace(blame, stage=stage_of(case, failing, culprit.cause))
    if culprit.cause == "size-baked" and not _systematic(bench, failing):
        blame = replace(blame, cause="unknown", stage="")
    told = replace(told, blame=blame)
    frozen = blame.cause in ("guard", "branch-frozen", "loop-unrolled", "size-baked")
    kind = FileRefuses if refused else SizeBaked if frozen and told.resized else OutputDiffers
    return kind(told, location=place)


def _systematic(bench: Bench, failing: Judged) -> bool:
    """Return whether the sizes are to blame: other values at the same sizes fail too."""
    if failing.plan.given is not None or seen(failing, bench).what == "shape":
        return True
    for seed in range(SEEDS):
        plan = replace(failing.plan, seed=failing.plan.seed + 101 + seed)
        if judge(bench, plan, plan.args(bench.sides.bound)).trial.outcome in ("agree", "ill-conditioned"):
            return False
    return True


def seen(judged: Judged, bench: Bench) -> SeenTrial:
    """Return a trial in numbers and names."""
    trial = judged.trial
    worst = trial.differences[0] if trial.differences else None
    return SeenTrial(
        trial=trial.name,
        values=trial.values,
        output=worst.output if worst else "",
        what=worst.what if worst else "",
        words=worst.words if worst else trial.note,
        allowed=loosest(bench.allowed).because,
        note=trial.note,
        example=dict(bench.right_sizes),
        made_for="the example has" if bench.home is None else "it is right at",
        resized={n: s for n, s in trial.sizes.items() if bench.right_sizes.get(n) != s},
    )
