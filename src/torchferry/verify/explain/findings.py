"""Judged trials -> findings: one for each way in which the file is not the model, with the place and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torchferry.records import FAILING, Case, Finding, Outcome
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
from torchferry.verify.run.eager_trace import Tape
from torchferry.verify.run.repeated_calls import Character

SEEDS = 3  # more trials at sizes that are under suspicion


def findings(case: Case, bench: Bench, judged: Sequence[Judged], habits: Character, tape: Tape) -> tuple[Finding, ...]:
    """Return what the trials showed, and how the model behaves when called again."""
    found = [*behaviour(bench, habits, tape)]
    bench = replace(bench, home=_home(judged, bench))
    wrong = [j for j in judged if j.trial.outcome in FAILING]
    for failing in _one_of_each(wrong, bench):
        found.append(_culprit(case, bench, failing, judged, tape))
    excused: tuple[Outcome, ...] = ("padding-only", "eager-cut-off")
    for outcome in excused:
        first = next((j for j in judged if j.trial.outcome == outcome), None)
        if first is not None:
            found.append(Finding(outcome, None, facts_of(first, bench)))
    tied = [j for j in judged if j.trial.outcome == "tie-order" and j.proof is not None and not j.proof.harmless]
    found += [Finding("tie-order", j.proof.place, facts_of(j, bench)) for j in tied[:1] if j.proof is not None]
    strange = [j for j in judged if j.trial.outcome == "beyond-range"]
    swallowed = [j for j in strange if j.trial.values == "nan" and swallows_nan(bench, j.want, j.got)]
    peak = next((n.location for n in tape.notes if takes_maximum(n)), None)
    found += [Finding("nan-swallowed", peak, facts_of(j, bench)) for j in swallowed[:1]]
    found += [Finding("differs-beyond-range", None, facts_of(j, bench)) for j in strange[:1] if not swallowed]
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
    if "values" in classes and any(j.trial.values in ("example", "random", "given") for j in classes["values"]):
        classes.pop("sizes", None)  # wrong already without another size
    return [min(group, key=_weight) for group in classes.values()]


def _weight(failing: Judged) -> tuple[int, int, int]:
    """Order failing trials by how simple they are: plain values, few sizes changed, small ones."""
    plain = 0 if failing.trial.values in ("example", "random") else 1
    return plain, len(failing.plan.sizes), sum(failing.trial.sizes.values())


def _culprit(case: Case, bench: Bench, failing: Judged, judged: Sequence[Judged], tape: Tape) -> Finding:
    failing = shrink(bench, failing)
    facts = facts_of(failing, bench)
    facts["failing"] = [j.trial.name for j in judged if j.trial.outcome in FAILING][:8]
    refused = failing.trial.outcome == "file-refused"
    if not refused and (blamed := blame_runtime(bench, failing)) is not None:
        facts.update(optimisers=list(blamed.optimisers), stage="onnxruntime's optimiser", cause="optimiser", value=blamed.value)
        return Finding("wrong-only-when-optimised-by-onnxruntime", blamed.location, facts)
    if facts["what"] == "count":  # another model's file: there is no place to look for
        return Finding("output-differs", None, facts)
    captured = case.value("capture")
    culprit = locate(bench, failing, captured.guards if captured else ())
    if misnamed.plain(failing) and (names := misnamed.misnamed(bench, failing)) is not None:
        return Finding("misnamed", culprit.location if culprit else None, {**facts, "side": names.what, "names": names.names})
    if culprit is None:
        return Finding("file-refuses" if refused else "output-differs", None, {**facts, "cause": "unknown"})
    place = culprit.location
    facts.update(cause=culprit.cause, guard=culprit.guard, code=text(place.file, place.line))
    facts["stage"] = stage_of(case, failing, culprit.cause)
    if culprit.cause == "size-baked" and not _systematic(bench, failing):
        facts.update(cause="unknown", stage="")
    frozen = facts["cause"] in ("guard", "branch-frozen", "loop-unrolled", "size-baked")
    kind = "file-refuses" if refused else "size-baked" if frozen and facts["resized"] else "output-differs"
    return Finding(kind, place, facts)


def _systematic(bench: Bench, failing: Judged) -> bool:
    """Return whether the sizes are to blame: other values at the same sizes fail too."""
    if failing.plan.given is not None or facts_of(failing, bench)["what"] == "shape":
        return True
    for seed in range(SEEDS):
        plan = replace(failing.plan, seed=failing.plan.seed + 101 + seed)
        if judge(bench, plan, plan.args(bench.sides.bound)).trial.outcome in ("agree", "ill-conditioned"):
            return False
    return True


def facts_of(judged: Judged, bench: Bench) -> dict[str, Any]:
    """Return a trial in numbers and names."""
    worst = judged.trial.differences[0] if judged.trial.differences else None
    sizes = dict(judged.trial.sizes)
    return {
        "trial": judged.trial.name,
        "sizes": sizes,
        "example": dict(bench.right_sizes),
        "made_for": "the example has" if bench.home is None else "it is right at",
        "resized": {n: s for n, s in sizes.items() if bench.right_sizes.get(n) != s},
        "values": judged.trial.values,
        "output": worst.output if worst else "",
        "what": worst.what if worst else "",
        "words": worst.words if worst else judged.trial.note,
        "allowed": loosest(bench.allowed).because,
        "note": judged.trial.note,
    }
