"""One plain presentation model for every format: what a reader is told, with no live object left in it.

`see(result)` makes it from a Result; `json_.py` writes it down and reads it back; the other files only lay it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from torchferry.catalogue.finding_rule import GUESS
from torchferry.certificate import given_up, versions
from torchferry.edits.inputs import Narrow
from torchferry.records import (
    FAILING,
    SHOWING,
    Case,
    Diagnosis,
    History,
    Job,
    Layout,
    Outcome,
    Repair,
    Signature,
    TensorSpec,
    Trial,
)
from torchferry.records.findings import ModelNotLoaded, ProcessEnded, WeightsQuantised
from torchferry.records.signature import folded
from torchferry.releases.tested import untested
from torchferry.report import addresses, shown_source, trial_words
from torchferry.report.unwritten_repairs import feeds_mended, unwritten
from torchferry.report.words import headline, lower_start, span

FEED_WEIGHTS = "the weights are inputs, each by its name in the model's state_dict; `Result.save` writes a file that has them"


class Reportable(Protocol):
    """What a Result has that a report needs."""

    @property
    def kind(self) -> str: ...
    @property
    def history(self) -> History: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    @property
    def ok(self) -> bool: ...
    @property
    def layout(self) -> Layout: ...


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """Where something is: the words for it, and the source line where there is one."""

    words: str = ""
    file: str = ""
    line: int = 0
    source: str = ""
    module_path: str = ""
    op: str = ""
    input_name: str = ""
    onnx_node: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnosis, as it is shown."""

    code: str
    slug: str
    title: str
    severity: str
    message: str
    help: str
    place: ShownPlace
    evidence: tuple[str, ...]
    fixed: bool
    page: str = ""  # the address of what is said of its code; relative where the documentation has no public one

    @property
    def detail(self) -> str:
        """The message without the title, where it begins with it and both are shown."""
        begun = f"{self.title}: "
        return self.message[len(begun) :] if self.message.startswith(begun) else self.message


@dataclass(frozen=True, slots=True)
class Mend:
    """A repair that was made."""

    code: str
    title: str
    safety: str
    changes: str
    edit: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of the file."""

    name: str
    dtype: str
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moving:
    """A size that moves: the axes that share it, its range, and why it ends there."""

    axes: tuple[str, ...]
    name: str
    low: int = 1
    high: int | None = None
    multiple_of: int = 1
    why: str = ""
    verified: str = ""  # the part of the range that was shown to hold, where it is not all of it
    tried: str = ""  # the sizes at which the file was compared, whatever came of it, from the smallest to the largest
    follows: bool = False  # an expression over other sizes, with no range of its own

    @property
    def places(self) -> tuple[str, ...]:
        """The axes, those of equal layers told once."""
        return folded(self.axes)

    @property
    def words(self) -> str:
        """`batch_size = input_ids[0] = attention_mask[0] (1..)`; of a size that follows others `mask[1] = past + sequence`."""
        if self.follows:
            return " = ".join((*self.places, self.name))
        tie = " = ".join((self.name, *self.places))
        step = f", multiples of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{tie} ({span(self.low, self.high)}{step}{': ' + self.why if self.why else ''})"


@dataclass(frozen=True, slots=True)
class Run:
    """One trial."""

    name: str
    outcome: Outcome
    worst: float
    max_abs: float
    seconds: float
    words: str


@dataclass(frozen=True, slots=True)
class Spent:
    """How a stage went, and how long it took."""

    stage: str
    ok: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class View:
    """All that a report says."""

    kind: str
    ok: bool
    headline: str
    path: str = ""
    bytes: int = 0
    seconds: float = 0.0
    opset: int = 0
    ir_version: int = 0
    runtime: str = ""
    libraries: tuple[str, ...] = ()  # of operators of custom domains, without which the file does not load
    weights: Literal["", "may be fed", "must be fed"] = ""  # where they are inputs of a file that was made of the verified one
    rounded: str = ""  # the precision of a file whose weights were quantised after it was verified
    asked: tuple[str, ...] = ()  # the words of the command that a check must be given again to come to the same
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    moving: tuple[Moving, ...] = ()
    fixed: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    trials: str = ""
    worst: str = ""
    allowed: str = ""
    shown: str = ""  # what the verdict stands on: weights, outputs, branches, mutants
    not_shown: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    mended: tuple[Problem, ...] = ()
    repairs: tuple[Mend, ...] = ()
    notes: tuple[str, ...] = ()
    stages: tuple[Spent, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What stands between the user and a file."""
        return tuple(p for p in self.problems if p.severity == "error")


def _asked(job: Job) -> tuple[str, ...]:
    return (*(("--target", job.target) if job.target else ()), *(("--data", "FEEDS.npz") if job.feeds else ()))


def see(result: Reportable | View) -> View:
    """Return the view of a result; a view, such as one read back from JSON, is its own."""
    if isinstance(result, View):
        return result
    made = of(result.history, kind=result.kind, path=result.path, elapsed=result.seconds, bytes=result.bytes, ok=result.ok)
    if result.layout.left_out:
        weightless = f"{made.headline}, once it is fed the weights that it was exported with"
        return replace(made, weights="must be fed", headline=weightless, notes=(*made.notes, FEED_WEIGHTS))
    return replace(made, weights="may be fed") if result.layout.as_inputs else made


def of(
    history: History, *, kind: str, path: Path | None = None, elapsed: float = 0.0, bytes: int = 0, ok: bool | None = None
) -> View:
    """Return the view of a history."""
    case = history.best
    waiting = unwritten(history, path)
    fine = (case.ok if ok is None else ok) and not waiting
    verified, translated = case.value("verify"), case.value("translate")
    checked = (history.cases[0] if waiting else case).value("check")
    bound = case.value("inputs")
    signature: Signature | None = bound.signature if bound is not None else None
    runs = tuple(_run(t) for t in case.trials)
    standing = (*history.mended, *case.diagnoses) if waiting else case.diagnoses  # mended on a copy that is gone: they stand
    problems = tuple(_problem(_without_what_failed(d, history)) for d in standing or _undiagnosed(case, fine))
    moving = _moving(signature, case) if signature else ()
    fixed = _fixed(signature) if signature else ()
    told = {m.words for m in moving} | set(folded(fixed)) | _plain_sizes(signature)  # what the tables say need not be noted again
    shown = str(path or case.job.onnx or "")
    rounded = next((f.precision for f in case.findings(WeightsQuantised)), "")
    made_with = versions()
    return View(
        kind=kind,
        ok=fine,
        headline=headline(
            kind,
            fine,
            shown,
            outcomes=[r.outcome for r in runs],
            severities=[p.severity for p in problems],
            stopped=_stopped_at(case),
            mended="file" if waiting else "feeds" if feeds_mended(history) else "",
            rounded=rounded,
            ran=checked is None or checked.reached != 1,
        ),
        path=shown,
        bytes=bytes,
        seconds=elapsed,
        opset=checked.opset if checked else translated.opset if translated else 0,
        ir_version=checked.ir_version if checked else 0,
        runtime=checked.runtime if checked else "",
        libraries=tuple(translated.settings.get("libraries", ())) if translated else (),
        rounded=rounded,
        asked=_asked(case.job) if kind == "check" else (),
        inputs=_tensors(signature.inputs if signature else translated.inputs if translated else ()),
        outputs=_tensors(translated.outputs if translated else ()),
        moving=moving,
        fixed=folded(fixed),
        given_up=folded(given_up(case)),
        runs=runs,
        trials=trial_words.agreement(case.trials) if verified else "",
        worst=trial_words.worst(case.trials) if verified else "",
        allowed=trial_words.allowed(verified.tolerance) if verified else "",
        shown=trial_words.shown(verified.coverage) if verified else "",
        not_shown=verified.coverage.not_shown if verified else (),
        not_done=verified.coverage.not_done if verified else (),
        problems=problems,
        mended=() if waiting else tuple(_problem(d) for d in history.mended),
        repairs=tuple(_mend(r) for r in history.kept if not isinstance(r.edit, Narrow)),  # to declare less mends nothing
        notes=tuple(note for note in dict.fromkeys((*_noted(case), *_untested(made_with))) if note not in told),
        stages=tuple(Spent(s.stage, s.fault is None, s.seconds) for s in case.steps),
        versions=made_with,
    )


def _noted(case: Case) -> Iterator[str]:
    return (note for step in case.steps for note in step.notes)


def _untested(made_with: Mapping[str, str]) -> Iterator[str]:
    if words := untested(made_with.get("torch")):
        yield words


def _stopped_at(case: Case) -> str:
    """Return the stage in which the work stopped, or what stopped it where that was none of the stages."""
    if not case.blocked:
        return ""
    if case.findings(ModelNotLoaded):
        return "load-failed"
    return "process-died" if case.findings(ProcessEnded) else case.steps[-1].stage


def _undiagnosed(case: Case, ok: bool) -> tuple[Diagnosis, ...]:
    """Return what is known of a failure that no rule has put a name to, so that none is ever shown without a reason."""
    if not ok and case.failed:
        facts = tuple(f"{t.name}: {_run(t).words or t.outcome}" for t in case.failed)
        return (Diagnosis("", facts[0], "", evidence=facts[1:], title="the outputs differ, and no rule says why"),)
    if not ok and case.blocked:
        fault = case.steps[-1].fault
        facts = tuple(f"{f.type_name}: {f.text}" for f in (fault.chain() if fault else ()))
        return (Diagnosis("", facts[0], "", evidence=facts[1:], title=f"{case.steps[-1].stage} failed, and no rule says why"),)
    return ()


def _without_what_failed(found: Diagnosis, history: History) -> Diagnosis:
    """Return a diagnosis that advises no guess that was made and came to nothing."""
    failed = [r for r in history.tried if r.code == found.code and r not in history.kept]
    tried = {f"{GUESS}: {r.title};": f"tried: {r.title}; the file was no better for it" for r in failed}
    facts = (next((said for begun, said in tried.items() if fact.startswith(begun)), fact) for fact in found.evidence)
    return replace(found, evidence=tuple(facts))


def _problem(found: Diagnosis) -> Problem:
    where = found.location
    place = ShownPlace(
        words=shown_source.place(where),
        file=shown_source.near(where.file or ""),
        line=where.line or 0,
        source=shown_source.line(where.file, where.line),
        module_path=where.module_path or "",
        op=where.op or "",
        input_name=where.input_name or "",
        onnx_node=where.onnx_node or "",
    )
    title = lower_start(found.title)
    return Problem(
        found.code, found.slug, title, found.severity, found.message, found.help, place, tuple(found.evidence), found.fixed,
        addresses.of(found.code),
    )  # fmt: skip


def _mend(repair: Repair) -> Mend:
    return Mend(repair.code, repair.title, repair.safety, repair.changes, str(repair.edit))


def _run(trial: Trial) -> Run:
    differs = "; ".join(f"`{d.output}`: {d.words}" for d in trial.differences)
    return Run(trial.name, trial.outcome, trial.worst, trial.max_abs, trial.seconds, differs or trial.note)


def _tensors(specs: tuple[TensorSpec, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(s.name, s.dtype, tuple(str(size) for size in s.shape)) for s in specs)


def _moving(signature: Signature, case: Case) -> tuple[Moving, ...]:
    rows = []
    compared = [t.sizes for t in case.trials if t.outcome in SHOWING or t.outcome in FAILING]
    for dim in signature.dims:
        axes = tuple(f"{s.name}[{i}]" for s in signature.inputs for i, size in enumerate(s.shape) if size == dim.name)
        held = case.ranges.get(dim.name, (dim.low, dim.high))
        sizes = [s[dim.name] for s in compared if dim.name in s]
        tried = span(min(sizes), max(sizes)) if sizes else ""
        part = "" if tuple(held) == (dim.low, dim.high) else span(*held)
        rows.append(Moving(axes, dim.name, dim.low, dim.high, dim.multiple_of, dim.why, part, tried=tried))
    # sizes made of several dims are ties too: `mask[1] = past + sequence`
    follows: dict[str, list[str]] = {}
    for spec in signature.inputs:
        for axis, size in enumerate(spec.shape):
            if isinstance(size, str) and signature.dim(size) is None:
                follows.setdefault(size, []).append(f"{spec.name}[{axis}]")
    rows.sort(key=lambda row: min((int(axis.rpartition("[")[2].rstrip("]")) for axis in row.axes), default=9))  # batches first
    return (*rows, *(Moving(tuple(axes), size, follows=True) for size, axes in follows.items()))


def _plain_sizes(signature: Signature | None) -> set[str]:
    specs = signature.inputs if signature else ()
    return {f"{spec.name}[{axis}] = {size}" for spec in specs for axis, size in enumerate(spec.shape)}


def _fixed(signature: Signature) -> tuple[str, ...]:
    axes = [
        f"{spec.name}[{axis}] = {size} ({spec.why[axis]})"
        for spec in signature.inputs
        for axis, size in enumerate(spec.shape)
        if isinstance(size, int) and axis < len(spec.why) and spec.why[axis]
    ]
    return (*axes, *(f"{name} = {value} is fixed in the file" for name, value in signature.fixed.items()))
