"""The ground that a verdict stands on, as it becomes known: each step of the assessment returns it with something more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchferry import eager
from torchferry.records import FAILING, Case, Coverage, Finding, Outcome
from torchferry.verify.coverage.unlike import Unlike
from torchferry.verify.coverage.weights import Weights
from torchferry.verify.judge.trial import Bench, Judged, judge
from torchferry.verify.run.eager_trace import EagerTrace
from torchferry.verify.run.repeated_calls import Character
from torchferry.verify.trials.budget import LARGE
from torchferry.verify.trials.plans import TrialPlan

COMPARED: tuple[Outcome, ...] = ("agree", "ill-conditioned")
TOLD = 8  # names of what was not shown, of each kind


@dataclass(frozen=True, slots=True)
class Ground:
    """The case with its trials, what became known of the weights, and what was found so far."""

    case: Case
    bench: Bench
    habits: Character
    trace: EagerTrace
    judged: tuple[Judged, ...]
    weights: Weights
    beside: tuple[Unlike, ...] = ()
    redrawn: tuple[Judged, ...] = ()  # trials with redrawn weights
    findings: tuple[Finding, ...] = ()
    shown: Coverage = field(default_factory=Coverage)

    @property
    def agreeing(self) -> list[Judged]:
        """The trials that agree, with the model's own weights."""
        return [j for j in self.judged if j.trial.outcome == "agree"]

    @property
    def compared(self) -> list[Judged]:
        """The trials of which every number speaks for the file: those that agree, or differ by rounding that was proven."""
        return [j for j in self.judged if j.trial.outcome in COMPARED]

    @property
    def cheapest(self) -> list[Judged]:
        """The same, those with the fewest numbers first."""
        return sorted(self.agreeing, key=lambda j: sum(a.numel() for a in j.args))

    def mixed(self, number: int) -> list[Judged]:
        """Return so many of them: half of them cheap, the others in the order of trials, the most telling first."""
        cheap = self.cheapest[: number // 2]
        return [*cheap, *(j for j in self.agreeing if not any(j is c for c in cheap))][:number]

    @property
    def failed(self) -> bool:
        """Whether some trial shows the file to be wrong."""
        return any(j.trial.outcome in FAILING for j in (*self.judged, *self.redrawn))

    @property
    def large(self) -> bool:
        """Whether a trial takes seconds, and another session a model's worth of memory."""
        return eager.weight_bytes(self.bench.sides.bound.module) > LARGE

    @property
    def seed(self) -> int:
        """The seed of the user's budget."""
        return self.case.job.budget.seed

    @property
    def room(self) -> Path | None:
        """The folder in which copies of the file may be written; None: the system's own for such things."""
        return self.case.job.workspace

    def count(self, **numbers: Any) -> Ground:
        """Return the ground with some numbers of its coverage known."""
        return replace(self, shown=replace(self.shown, **numbers))

    def lacks(self, words: Iterable[str]) -> Ground:
        """Return the ground with something that was not shown."""
        return self.count(not_shown=(*self.shown.not_shown, *list(words)[:TOLD]))

    def leaves_out(self, words: str) -> Ground:
        """Return the ground with something that was not done."""
        return self.count(not_done=(*self.shown.not_done, words))

    def finds(self, *found: Finding) -> Ground:
        """Return the ground with findings."""
        return replace(self, findings=(*self.findings, *found))

    def plus(self, *judged: Judged) -> Ground:
        """Return the ground with more trials."""
        return replace(self, judged=(*self.judged, *judged))

    def tried(self, plan: TrialPlan) -> Judged | None:
        """Return a further trial; None where no such call can be made, or the file does not promise to take it."""
        try:
            args = plan.args(self.bench.sides.bound)
        except (ValueError, RuntimeError):  # the model has no such input, or the input's dtype no such number
            return None
        if self.case.job.onnx is not None and not self.bench.sides.declares(args):
            return None
        return judge(self.bench, plan, args)
