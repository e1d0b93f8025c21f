"""Whether a size makes a file wrong, or only some values do: the same sizes again, with several draws of plain values.

A size may be given up only where every draw is wrong beyond it and every draw is right within. One near-tie that rounding
decides the other way is about values, and stays a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchferry.records import FAILING, Case
from torchferry.records.findings import JudgedBySize, Verdict
from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.trials.plans import TrialPlan

SEEDS = (101, 102, 103, 104)


def by_size(case: Case, bench: Bench, judged: Sequence[Judged]) -> tuple[JudgedBySize, ...]:
    """Return how the file does at the sizes of the trials that failed, one dim moved at a time; () where none may be given up."""
    failed = [j.trial.sizes for j in judged if j.trial.outcome in FAILING]
    free = [d.name for d in bench.sides.bound.signature.dims if not d.asked]
    if not failed or not free or case.job.onnx is not None:
        return ()
    example = _verdict(bench, {})
    moved: dict[tuple[str, int], Verdict] = {}
    for name in free if example == "right" else ():
        good = {j.trial.sizes[name] for j in judged if j.trial.outcome == "agree"}
        for size in _worth_a_look(bench.sizes[name], {sizes[name] for sizes in failed}, good):
            moved[name, size] = _verdict(bench, {name: size})
    return (JudgedBySize(example, moved),)


def _worth_a_look(example: int, bad: set[int], good: set[int]) -> list[int]:
    """Return the sizes at which trials failed, and on either side of the example the last before them at which one agreed."""
    wanted = bad - {example}
    for way in (-1, 1):
        beyond = [b for b in wanted if (b - example) * way > 0]
        inside = [g for g in good - bad if beyond and 0 < (g - example) * way < min(abs(b - example) for b in beyond)]
        wanted |= {max(inside, key=lambda g: abs(g - example))} if inside else set()
    return sorted(wanted)


def _verdict(bench: Bench, sizes: Mapping[str, int]) -> Verdict:
    """Return what several draws at these sizes come to; draws that cannot be made, or that eager refuses, say nothing."""
    seen: set[bool] = set()
    for seed in SEEDS:
        plan = TrialPlan(sizes, "random", seed)
        try:
            outcome = judge(bench, plan, plan.args(bench.sides.bound)).trial.outcome
        except ValueError:
            continue
        if outcome != "eager-refused":
            seen.add(outcome not in FAILING)
        if len(seen) == 2:
            break
    return "mixed" if len(seen) != 1 else "right" if True in seen else "wrong"
