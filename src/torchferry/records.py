"""The frozen records that pass between stages; this file imports neither torch nor onnx.

    Job --inputs--> Bound --capture--> Captured --translate--> Translated --check--> Checked --verify--> Verified

Each stage answers with a `Step`. The steps of one pass over the pipeline, with the diagnoses drawn
from them, are a `Case`; the cases that the repair loop went through are a `History`.
A fault in the user's model is a value in here (`Fault`, `Finding`), never an exception.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Stage = Literal["inputs", "capture", "translate", "check", "verify"]
STAGES: tuple[Stage, ...] = ("inputs", "capture", "translate", "check", "verify")
Severity = Literal["error", "warning", "note"]
Safety = Literal["safe", "unsafe", "manual"]
SAFETY_ORDER: tuple[Safety, ...] = ("safe", "unsafe", "manual")
GUESSED = "CHK041"  # the diagnosis of a file that was mended by a guess
Facts = Mapping[str, Any]  # JSON-able values only: text, numbers, booleans, None, lists and dicts of these


# --- what went wrong, as plain data -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception as plain data: storable, printable, free of references to the model."""

    type_name: str
    text: str
    frames: tuple[Frame, ...] = ()
    cause: Fault | None = None

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """Return `error` and its chain of causes as data."""
        frames = tuple(Frame(f.filename, f.lineno or 0, f.name, f.line or "") for f in traceback.extract_tb(error.__traceback__))
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return cls(type(error).__name__, str(error), frames, Fault.of(cause) if cause is not None else None)

    def chain(self) -> Iterator[Fault]:
        """Yield this fault, then what caused it, and so on to the root."""
        fault: Fault | None = self
        while fault is not None:
            yield fault
            fault = fault.cause


@dataclass(frozen=True, slots=True)
class Location:
    """Where: in the user's source, in the module tree, among the inputs, or in the ONNX graph. All optional."""

    file: str | None = None
    line: int | None = None
    module_path: str | None = None
    op: str | None = None
    input_name: str | None = None
    onnx_node: str | None = None

    def __str__(self) -> str:
        """Return the place nearest to the user's own words."""
        if self.file and self.line:
            return f"{self.file}:{self.line}"
        for label, value in (("input", self.input_name), ("module", self.module_path), ("node", self.onnx_node)):
            if value:
                return f"{label} {value}"
        return self.op or self.file or ""

    @property
    def brief(self) -> str:
        """The same without the folder, for what is kept longer than the folder may be."""
        return f"{Path(self.file).name}:{self.line}" if self.file and self.line else str(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a stage noticed: a fact without words. A rule of the catalogue turns it into a diagnosis."""

    kind: str
    location: Location | None = None
    facts: Facts = field(default_factory=dict)


# --- what the file takes and gives ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dim:
    """A size that may move: its name, the range that must hold, and why it ends there."""

    name: str
    low: int = 1
    high: int | None = None
    multiple_of: int = 1
    why: str = ""  # "wpe has 1024 rows"; empty when nothing bounds it
    asked: bool = False  # the user asked for this range, so giving up part of it is an error

    def __str__(self) -> str:
        span = f"{self.low}..{'' if self.high is None else self.high}"
        step = f", multiples of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{self.name} = {span}{step}" + (f" ({self.why})" if self.why else "")


Size = int | str  # 768, "batch_size", or an expression over dim names: "past_sequence_length + sequence_length"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output of the file: its name, dtype ("float32", "int64", "bool", ...) and sizes."""

    name: str
    dtype: str
    shape: tuple[Size, ...]
    why: tuple[str, ...] = ()  # for fixed axes, why they are fixed; as long as shape, or empty


@dataclass(frozen=True, slots=True)
class Signature:
    """All inputs in the file's order, the dims that their shapes speak of, and the arguments fixed in the file."""

    inputs: tuple[TensorSpec, ...]
    dims: tuple[Dim, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)  # argument name -> the constant it was fixed to, as text
    conditions: tuple[str, ...] = ()  # on several dims at once, as `torchferry.guards` reads them: "past + sequence <= 1024"

    def dim(self, name: str) -> Dim | None:
        """Return the dim of that name, or None."""
        return next((d for d in self.dims if d.name == name), None)


# --- what the user asked for ---------------------------------------------------------------------

Call = tuple[tuple[Any, ...], Mapping[str, Any]]  # (args, kwargs)


@dataclass(frozen=True, slots=True)
class Edit:
    """A named, comparable, storable change to a Job. The stage that it names knows how to carry it out."""

    stage: Stage
    name: str
    params: Facts = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{k}={v!r}" for k, v in self.params.items())
        return f"{self.stage}: {self.name}({words})"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much the verification may cost, and how long anything foreign may take before it counts as hung.

    `trials` is how many ordinary trials there are: sizes and kinds of values that are tried on every model. Up to four times as
    many come on top that are directed at something in this model or file: a number that it compares with, the rows of a table, a
    length at which it turns. Both end earlier where they are costly, by the work that they are (counted, not timed). `seconds`
    ends all of them by the clock; the result then says that they were cut short.
    """

    trials: int = 64  # and up to a quarter more with redrawn weights, and for mutants that none of these notices
    seconds: float | None = None  # for all trials; None: no clock, only work
    seed: int = 0
    time_limit: float = 600.0  # for one stage, or one run in onnxruntime
    mutants: int | None = None  # of the file that the trials must notice; None: as many as cost little, none for a large file


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much may differ, and why that much."""

    rtol: float  # of the value
    share: float  # of the spread of the output that the value belongs to
    because: str
    atol: float = 0.0  # whatever the value, where the caller asked for that
    least: float = 0.0  # some units in the last place of the smallest numbers that the dtype has
    columns: tuple[float, ...] = ()  # the spread of each place on the last axis, as a share of the whole output's; (): alike


@dataclass(frozen=True, slots=True)
class Job:
    """All that is needed to do it again: the user's words, and the repairs made so far."""

    model: Any = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    examples: tuple[Call, ...] = ()
    input_names: tuple[str, ...] | None = None
    output_names: tuple[str, ...] | None = None
    dynamic_shapes: Any = None  # as torch.export takes it; "none" for a file of fixed sizes; None: find out
    dynamic_axes: Any = None  # as the old torch.onnx.export takes it
    ranges: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    domain: Any = None  # {input: (low, high)}, or a function (sizes, seed) -> call: the values that trials may use
    tolerance: Tolerance | None = None  # how much may differ; None: found out
    opset: int | None = None
    target: str | None = None
    onnx: Path | None = None  # an existing file: capture and translate are skipped
    feeds: tuple[Mapping[str, Any], ...] = ()  # for an existing file with no model: what will be fed to it
    budget: Budget = field(default_factory=Budget)
    edits: tuple[Edit, ...] = ()
    workspace: Path | None = None  # the directory where files may be written while the job runs
    file_name: str = "model.onnx"  # what the finished file will be called; weights beside it go by this name

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that this job goes through: a file from elsewhere starts later, one without a model ends earlier."""
        if self.onnx is None:
            return STAGES
        return ("check",) if self.model is None else ("inputs", "translate", "check", "verify")

    def plus(self, edit: Edit) -> Job:
        """Return this job with one more edit."""
        return replace(self, edits=(*self.edits, edit))

    def edits_for(self, stage: Stage, name: str | None = None) -> tuple[Edit, ...]:
        """Return the edits that a stage has to carry out, in the order they were made."""
        return tuple(e for e in self.edits if e.stage == stage and name in (None, e.name))


# --- what the stages answer ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound:
    """Stage 1's answer: the model as a plain function of tensors, one example, and what the file will take.

    `module` is an nn.Module whose forward takes the tensors of `signature.inputs` in that order, by position, rebuilds
    the user's containers from them, calls the user's model, and returns a flat tuple of tensors, named `outputs`.
    Every later stage sees only this flat form.
    `vary(sizes, values, seed)` makes the tensors of another call: `sizes` maps dim names to numbers (dims left out keep
    the example's), `values` names a way to fill them; it raises ValueError where no such call can be made.
    `feeds(args, kwargs)` flattens the *user's* arguments into {input name: array}, and refuses in words what the file fixed.
    """

    module: Any
    args: tuple[Any, ...]
    signature: Signature
    outputs: tuple[str, ...]
    dynamic_shapes: Any  # for torch.export: a tuple as long as args, each None or {axis: Dim}
    vary: Callable[..., tuple[Any, ...]]
    feeds: Callable[..., dict[str, Any]]
    examples: tuple[tuple[Any, ...], ...] = ()  # the user's further examples, flattened like the first
    prefix: str = "model."  # where the user's module sits inside `module`: to be taken off names that users see
    roles: Mapping[str, str] = field(default_factory=dict)  # input name -> what it is for; see inputs/roles.py


@dataclass(frozen=True, slots=True)
class Attempt:
    """One strategy tried on the way to a result, and what stopped it (None: nothing did)."""

    strategy: str
    fault: Fault | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on sizes under which the capture is valid, in the user's dim names, and the line that made it."""

    text: str  # "sequence_length > 10", as sympy can parse it
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """Stage 2's answer: a torch.export.ExportedProgram, the conditions it relies on, and how it was got."""

    program: Any
    strategy: str
    attempts: tuple[Attempt, ...] = ()
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Translated:
    """Stage 3's answer: a file in the workspace, and the map from its names back to the user's source."""

    path: Path
    opset: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    provenance: Mapping[str, Location] = field(default_factory=dict)  # node name and value name -> place in the source
    model: Any = None  # the onnx_ir.Model, while it is in memory
    settings: Mapping[str, Any] = field(default_factory=dict)  # what a session must set for the file to be right


@dataclass(frozen=True, slots=True)
class Checked:
    """Stage 4's answer: what the file turned out to be."""

    opset: int
    ir_version: int
    bytes: int
    runtime: str  # "onnxruntime 1.31.1"
    path: Path | None = None  # for a file from elsewhere: the one to use, mended in the workspace or as it was
    reached: int = 0  # for a file from elsewhere: 0 it was read, 1 it opens, 2 it runs on every feed


@dataclass(frozen=True, slots=True)
class Difference:
    """Two outputs that are not the same: `what` is "shape", "dtype", "nan", "inf", "value", "count" or "refused"."""

    output: str
    what: str
    words: str  # "off by 0.031 at [0, 17], allowed 0.001"
    max_abs: float = 0.0
    max_rel: float = 0.0
    at: tuple[int, ...] = ()
    ratio: float = 0.0  # worst difference over what is allowed there; at most 1 when all is well


Outcome = Literal[
    "agree",
    "differ",
    "file-refused",
    "eager-refused",  # no evidence: the model itself does not take this
    "beyond-range",  # they differ, at values that the model need not take (infinities, or where eager itself overflows)
    "ill-conditioned",  # they differ by rounding, as was shown for each number
    "padding-only",  # they differ, at padded positions alone
    "tie-order",  # they differ in the order of equal keys
    "random",  # values are drawn anew at every call
    "too-large",  # the file runs out of the memory that a trial may take
    "undetermined",  # they differ where a decomposition has no single answer, in eager either
    "eager-cut-off",  # they differ where a kernel of torch's cuts sums off at 16 bits, and the file gives what these come to
]


# A difference that is rounding was shown to be, number by number: that is agreement as far as floats go.
SHOWING: tuple[Outcome, ...] = ("agree", "ill-conditioned", "padding-only", "tie-order", "random")


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of the file with the eager model, in a form that can be run again."""

    name: str  # "batch_size=3, values=left-padded"
    sizes: Mapping[str, int]
    values: str
    seed: int
    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    worst: float = 0.0  # largest ratio of difference to allowance
    max_abs: float = 0.0
    seconds: float = 0.0
    note: str = ""
    excused: float = 0.0  # the share of its elements that differ for another reason than rounding
    call: tuple[Any, ...] | None = None  # the tensors, where a search found them and no name makes them again
    weights: int = 0  # which draw of redrawn weights both sides had; 0: the model's own


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a verdict stands on: of what there is, how much the trials have shown; and what they have not, by name.

    A weight is the model's byte for byte (`equal`), or what eager or a known fold makes of the model's (`computed`), or at
    least one that no trial would have let pass had it been another (`reached`).
    """

    weights: int = 0
    equal: int = 0
    computed: int = 0
    reached: int = 0
    outputs: int = 0
    varied: int = 0
    values: int = 0  # inside the file, that hang on values of its inputs
    moved: int = 0
    sides: int = 0  # of comparisons, conditions and clips, in the file and in eager
    taken: int = 0
    mutants: int = 0
    noticed: int = 0
    redrawn: int = 0  # trials with redrawn weights that agree
    not_shown: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()  # what was left out, and why


def sizes_shown(trials: Iterable[Trial]) -> dict[str, tuple[int, ...]]:
    """Return, for each dim, the sizes at which the file was seen to agree: what reports, results and certificates go by."""
    found: dict[str, set[int]] = {}
    for trial in trials:
        for name, size in trial.sizes.items() if trial.outcome in SHOWING else ():
            found.setdefault(name, set()).add(size)
    return {name: tuple(sorted(sizes)) for name, sizes in found.items()}


def ranges_shown(trials: Iterable[Trial]) -> dict[str, tuple[int, int | None]]:
    """Return, for each dim, the smallest and the largest size at which the file was seen to agree."""
    return {name: (sizes[0], sizes[-1]) for name, sizes in sizes_shown(trials).items()}


@dataclass(frozen=True, slots=True)
class Verified:
    """Stage 5's answer: the trials, what was allowed, and the ranges over which the file was shown to hold."""

    trials: tuple[Trial, ...]
    tolerance: Tolerance
    ranges: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials that show the file to be wrong."""
        return tuple(t for t in self.trials if t.outcome in ("differ", "file-refused"))

    @property
    def shown(self) -> bool:
        """Whether any trial says something for the file: one that eager refuses, or that no model need pass, does not."""
        return any(t.outcome in SHOWING for t in self.trials)


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage answered: a value or a fault, exactly one; and what it noticed on the way."""

    stage: Stage
    value: Any = None
    fault: Fault | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.value is None) == (self.fault is None):
            raise ValueError(f"a step has a value or a fault, exactly one (stage {self.stage})")


# --- what we say about it ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong and where (`message`), what to do (`help`), and what was seen (`evidence`)."""

    code: str
    message: str
    help: str = ""
    location: Location = field(default_factory=Location)
    evidence: tuple[str, ...] = ()
    slug: str = ""  # these three are filled in from the rule
    title: str = ""
    severity: Severity = "error"
    fixed: bool = False  # a repair mended it


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

    def value(self, stage: Stage) -> Any:
        """Return a stage's value, or None."""
        step = self.step(stage)
        return step.value if step else None

    def fault(self, stage: Stage) -> Fault | None:
        """Return the fault that stopped a stage, or None."""
        step = self.step(stage)
        return step.fault if step else None

    def findings(self, kind: str) -> tuple[Finding, ...]:
        """Return all findings of a kind, whatever the stage."""
        return tuple(f for s in self.steps for f in s.findings if f.kind == kind)

    @property
    def file(self) -> Path | None:
        """The file that came out: as the check stage mended it, or as it was translated."""
        checked, made = self.value("check"), self.value("translate")
        mended = checked.path if checked is not None else None
        return mended or (made.path if made is not None else None)

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
        return answered and not self.errors and (verified is None or (verified.shown and not verified.failed))


@dataclass(frozen=True, slots=True)
class History:
    """The repair loop, kept whole: every case in order, what was tried, and which repairs were kept."""

    cases: tuple[Case, ...]
    best: Case
    tried: tuple[Repair, ...] = ()
    kept: tuple[Repair, ...] = ()
    mended: tuple[Diagnosis, ...] = ()  # the diagnoses that the kept repairs answered
