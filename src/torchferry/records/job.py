"""What the user asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from torchferry.records.edits import Edit
from torchferry.records.stages import STAGES, Stage

if TYPE_CHECKING:
    from torchferry.records.case import Case
    from torchferry.records.evidence import Padding, Trial

Call = tuple[tuple[Any, ...], Mapping[str, Any]]  # (args, kwargs)
Domain = Mapping[str, tuple[float, float]] | Callable[[Mapping[str, int], int], Any]  # {input: (low, high)}; sizes, seed -> call
SomeEdit = TypeVar("SomeEdit", bound=Edit)


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
class Generation:
    """What a graph is asked that completes a directory which generates; a task makes it.

    `settle(case)` makes the directory of the case's file, with all that it needs to generate, and returns where it is.
    `write(directory, tolerance)` generates with it and with the model, and compares: one trial a text.
    `pads(directory, tolerance)` measures how padding moves its answers and the model's; None where that has no meaning.
    `quantise(directory)` puts weights of fewer bits in the place of the exact ones, and returns their precision, and what that
    changes in words.
    """

    settle: Callable[[Case], Path]
    write: Callable[[Path, Tolerance], tuple[Trial, ...]]
    pads: Callable[[Path, Tolerance], Padding | None] = lambda directory, allowed: None
    quantise: Callable[[Path], tuple[str, str]] | None = None
    notes: tuple[str, ...] = ()  # what had to be set for it


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a file has the model's weights."""

    beside: bool | None = None  # in a file of their own; None: where they are many
    as_inputs: bool = False  # inputs too, which need not be fed
    left_out: bool = False  # inputs alone, which must be fed; what is verified is the file before they are taken out


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
    domain: Domain | None = None  # the values that trials may use
    tolerance: Tolerance | None = None  # how much may differ; None: found out
    opset: int | None = None
    target: str | None = None
    layout: Layout = field(default_factory=Layout)
    translations: Mapping[Any, Callable[..., Any]] = field(default_factory=dict)  # torch operator -> its ONNX, for this job
    custom_opsets: Mapping[str, int] = field(default_factory=dict)  # domain -> the version that the file imports of it
    onnx: Path | None = None  # an existing file: capture and translate are skipped
    feeds: tuple[Mapping[str, Any], ...] = ()  # for an existing file with no model: what will be fed to it
    trust: bool = False  # code that is in the model's file may be run
    budget: Budget = field(default_factory=Budget)
    edits: tuple[Edit, ...] = ()
    generation: Generation | None = None  # for the graph that completes a directory which generates
    workspace: Path | None = None  # the directory where files may be written while the job runs
    file_name: str = "model.onnx"  # what the finished file will be called; weights beside it go by this name

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that this job goes through: a file from elsewhere is made already, one without a model is only checked."""
        if self.onnx is not None and self.model is None:
            return ("check",)
        left_out = {"capture"} if self.onnx is not None else set[str]()
        left_out |= {"generate"} if self.generation is None else set()
        return tuple(stage for stage in STAGES if stage not in left_out)

    def plus(self, edit: Edit) -> Job:
        """Return this job with one more edit."""
        return replace(self, edits=(*self.edits, edit))

    def edits_for(self, kind: type[SomeEdit]) -> tuple[SomeEdit, ...]:
        """Return the edits of a class, in the order they were made."""
        return tuple(e for e in self.edits if isinstance(e, kind))
