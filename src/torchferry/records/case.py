"""One pass over the pipeline, what we say about it, and the passes of a whole repair loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, overload

from torchferry.records.answers import Attempt, Bound, Captured, Checked, Translated
from torchferry.records.edits import Edit
from torchferry.records.evidence import Generated, Trial, Verified
from torchferry.records.faults import Fault, Location
from torchferry.records.finding import Finding
from torchferry.records.job import Job
from torchferry.records.stages import Stage

Severity = Literal["error", "warning", "note"]
Safety = Literal["safe", "unsafe", "manual"]
SAFETY_ORDER: tuple[Safety, ...] = ("safe", "unsafe", "manual")
Answer = Bound | Captured | Translated | Checked | Verified | Generated
A = TypeVar("A", bound=Answer)
F = TypeVar("F", bound=Finding)
GUESSED = "CHK041"  # the diagnosis of a file that was mended by a guess


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage answered: a value or a fault, exactly one; and what it noticed on the way."""

    stage: Stage
    value: Answer | None = None
    fault: Fault | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    seconds: float = 0.0
    remedy: Remedy | None = field(default=None, compare=False, repr=False)  # what a search found, for the pass with its edit

    def __post_init__(self) -> None:
        if (self.value is None) == (self.fault is None):
            raise ValueError(f"a step has a value or a fault, exactly one (stage {self.stage})")


@dataclass(frozen=True, slots=True)
class Remedy:
    """An edit under which a search got an answer out of a stage that had stopped, and that answer."""

    edit: Edit
    answer: Step


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong and where (`message`), what to do (`help`), and what was seen (`evidence`)."""

    code: str
    message: str
    help: str = ""
    location: Location = field(default_factory=Location)
    evidence: tuple[str, ...] = ()
    slug: str = ""  # these three are filled in from the rule, the title only where the diagnosis has none
    title: str = ""
    severity: Severity = "error"
    fixed: bool = False  # a repair mended it
    finding: Finding | None = field(default=None, compare=False, repr=False)  # what it was made of, for the rule's own repairs


@dataclass(frozen=True, slots=True)
class Repair:
    """An offer to edit the Job so that the fault goes away; `changes` says what an unsafe one changes."""

    code: str
    title: str
    edit: Edit
    safety: Safety = "safe"
    changes: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One pass over the pipeline: the job, each stage's answer, and the diagnoses drawn from them."""

    job: Job
    steps: tuple[Step, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()

    def plus(self, step: Step) -> Case:
        """Return this case with one more step."""
        return replace(self, steps=(*self.steps, step))

    def step(self, stage: Stage) -> Step | None:
        """Return what a stage answered, or None if it was not reached."""
        return next((s for s in self.steps if s.stage == stage), None)

    @overload
    def value(self, stage: Literal["inputs"]) -> Bound | None: ...
    @overload
    def value(self, stage: Literal["capture"]) -> Captured | None: ...
    @overload
    def value(self, stage: Literal["translate"]) -> Translated | None: ...
    @overload
    def value(self, stage: Literal["check"]) -> Checked | None: ...
    @overload
    def value(self, stage: Literal["verify"]) -> Verified | None: ...
    @overload
    def value(self, stage: Literal["generate"]) -> Generated | None: ...
    @overload
    def value(self, stage: Stage) -> Answer | None: ...
    def value(self, stage: Stage) -> Answer | None:
        """Return a stage's value, or None."""
        step = self.step(stage)
        return step.value if step else None

    def answer(self, kind: type[A]) -> A:
        """Return the answer of this class, where an earlier stage has given one or this one would not be running."""
        for step in self.steps:
            if isinstance(step.value, kind):
                return step.value
        raise LookupError(f"no stage has answered with a {kind.__name__}")

    def fault(self, stage: Stage) -> Fault | None:
        """Return the fault that stopped a stage, or None."""
        step = self.step(stage)
        return step.fault if step else None

    def findings(self, kind: type[F]) -> tuple[F, ...]:
        """Return all findings of a kind, whatever the stage."""
        return tuple(f for s in self.steps for f in s.findings if isinstance(f, kind))

    @property
    def file(self) -> Path | None:
        """The file that came out: in the directory that it completes, as the check stage mended it, or as it was translated."""
        made = (self.value("generate"), self.value("check"), self.value("translate"))
        return next((value.path for value in made if value is not None and value.path is not None), None)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every comparison with the eager model, in the order they were run: of the file, then of the texts that it writes."""
        return tuple(trial for step in self.steps for trial in getattr(step.value, "trials", ()))

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials that show the file to be wrong."""
        return tuple(trial for step in self.steps for trial in getattr(step.value, "failed", ()))

    @property
    def ranges(self) -> Mapping[str, tuple[int, int | None]]:
        """The sizes over which the file was shown to hold, by dimension."""
        shown = self.value("generate") or self.value("verify")
        return shown.ranges if shown is not None else {}

    @property
    def blocked(self) -> bool:
        """Whether the last stage left nothing for the next one to work on."""
        return bool(self.steps) and self.steps[-1].fault is not None

    @property
    def errors(self) -> tuple[Diagnosis, ...]:
        """The diagnoses that stand between the user and a file."""
        return tuple(d for d in self.diagnoses if d.severity == "error")

    @property
    def guessed(self) -> bool:
        """Whether all that is wrong with a file is that it was mended by a guess."""
        return bool(self.errors) and all(d.code == GUESSED for d in self.errors)

    @property
    def ok(self) -> bool:
        """Whether every stage answered, nothing is wrong, and every trial that counts agreed."""
        answered = all(self.value(stage) is not None for stage in self.job.stages)
        verified = self.value("verify")
        return answered and not self.errors and not self.failed and (verified is None or verified.shown)


@dataclass(frozen=True, slots=True)
class History:
    """The repair loop, kept whole: every case in order, what was tried, and which repairs were kept."""

    cases: tuple[Case, ...]
    best: Case
    tried: tuple[Repair, ...] = ()
    kept: tuple[Repair, ...] = ()
    mended: tuple[Diagnosis, ...] = ()  # the diagnoses that the kept repairs answered
