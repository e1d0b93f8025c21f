"""The coverage of a verdict, and what it lacks: weights, sizes, redrawn weights, branches and mutants, outputs and inputs.

What could make ordinary calls wrong is a finding, and refuses: a weight that is neither the model's nor noticed, an output
that was never compared, an input that was never varied. What no input was found for is told as not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchferry.records import Case, Coverage, Finding, Trial
from torchferry.verify.coverage.branches_and_mutants import look_inside
from torchferry.verify.coverage.compared import compare
from torchferry.verify.coverage.ground import Ground
from torchferry.verify.coverage.lively import redrawable
from torchferry.verify.coverage.redrawn import redraw
from torchferry.verify.coverage.suspects import weigh
from torchferry.verify.coverage.unlike import unlike
from torchferry.verify.coverage.untried import untried
from torchferry.verify.coverage.weights import weights
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.run.eager_trace import EagerTrace
from torchferry.verify.run.repeated_calls import Character


@dataclass(frozen=True, slots=True)
class Assessed:
    """What the trials have shown, what they lack, and the trials that were made on the way."""

    coverage: Coverage
    findings: tuple[Finding, ...] = ()
    judged: tuple[Judged, ...] = ()  # with the model's own weights
    redrawn: tuple[Trial, ...] = ()


def assess(case: Case, bench: Bench, judged: Sequence[Judged], habits: Character, trace: EagerTrace) -> Assessed:
    """Return what these trials stand on, and the further ones that were made to find out."""
    found = weights(bench.sides)
    ground = Ground(case, bench, habits, trace, tuple(judged), found, tuple(unlike(found)))
    ground = weigh(_with_untried(ground))
    if not ground.failed and ground.agreeing and not any(bench.traits.random):
        ground = compare(_deepened(ground))
    redrawn = tuple(j.trial for j in ground.redrawn)
    return Assessed(ground.shown, ground.findings, ground.judged[len(judged) :], redrawn)


def _deepened(ground: Ground) -> Ground:
    """Return the ground with trials of redrawn weights, branches and mutants, unless the time that was asked for is used up."""
    allowed = ground.case.job.budget.seconds
    if allowed is not None and sum(j.trial.seconds for j in ground.judged) >= allowed:
        return ground.leaves_out("redrawn weights, branches and mutants: the trials took all the time that they may")
    which = redrawable(ground.weights, ground.bench.sides.bound)
    ground = redraw(ground, which)
    return ground if ground.failed else look_inside(ground, which)


def _with_untried(ground: Ground) -> Ground:
    """Return the ground with trials at sizes, and beyond guards, that no trial has shown anything of."""
    captured = ground.case.value("capture")
    guards = captured.guards if captured else ()
    if ground.failed or ground.large:
        return ground
    plans = list(untried(ground.bench, ground.judged, guards, ground.seed))
    return ground.plus(*(tried for plan in plans if (tried := ground.tried(plan)) is not None))
