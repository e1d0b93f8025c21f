"""What the verify stage notices: trials that fail or are excused, models that are no functions, and what no trial shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torchferry.records.evidence import Outcome
from torchferry.records.finding import Finding

Verdict = Literal["right", "wrong", "mixed"]  # what several draws at the same sizes come to


@dataclass(frozen=True, slots=True)
class Blame:
    """Why a trial fails: the kind of cause and the stage at fault ("" where not known), and the names of all that fail."""

    cause: str = ""
    guard: str = ""
    code: str = ""
    stage: str = ""
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenTrial:
    """A trial in numbers and names: the output that differs worst ("": all), in what, and the sizes unlike the example's."""

    trial: str
    values: str
    output: str
    what: str
    words: str
    allowed: str  # why as much as that is allowed
    note: str
    example: Mapping[str, int]
    made_for: str  # how the example's sizes are told of
    resized: Mapping[str, int]
    blame: Blame = Blame()


@dataclass(frozen=True, slots=True)
class AboutTrial(Finding):
    """What all findings about one trial have."""

    seen: SeenTrial


@dataclass(frozen=True, slots=True)
class OutputDiffers(AboutTrial):
    """The file gives another answer than the model."""


@dataclass(frozen=True, slots=True)
class FileRefuses(AboutTrial):
    """onnxruntime refuses what the model takes."""


@dataclass(frozen=True, slots=True)
class SizeBaked(AboutTrial):
    """The file is wrong at other sizes than the example's: something that hangs on them was computed once."""


@dataclass(frozen=True, slots=True)
class NamesSwapped(AboutTrial):
    """The file is right but for the names of its inputs or outputs: {name in the file: name in the model}."""

    side: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WrongWhenOptimised(AboutTrial):
    """The file is right without some of onnxruntime's optimisers; `value` stands inside of what they rewrite."""

    optimisers: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class RefusedWhenOptimised(Finding):
    """onnxruntime opens the file without some of its optimisers, and not with them."""

    optimisers: tuple[str, ...]
    error: str


@dataclass(frozen=True, slots=True)
class PaddingOnly(AboutTrial):
    """They differ at padded positions alone."""


@dataclass(frozen=True, slots=True)
class EagerCutOff(AboutTrial):
    """They differ where a kernel of torch's cuts sums off."""


@dataclass(frozen=True, slots=True)
class OutputBiased(Finding):
    """An output that the file gives too large or too small by a share, throughout; and how far either side is from float64."""

    output: str
    share: float  # of the model's own numbers, over all trials
    trials: int  # in which float64 was asked
    models: float
    files: float


@dataclass(frozen=True, slots=True)
class TieOrder(AboutTrial):
    """They differ in the order of equal keys, and that does harm."""


@dataclass(frozen=True, slots=True)
class NanSwallowed(AboutTrial):
    """The file gives a number where the model gives NaN."""


@dataclass(frozen=True, slots=True)
class DiffersBeyondRange(AboutTrial):
    """They differ at values that no model need take."""


@dataclass(frozen=True, slots=True)
class JudgedBySize(Finding):
    """How the file does at the example's sizes, and with one dim moved: {(dim, size): verdict}."""

    example: Verdict
    moved: Mapping[tuple[str, int], Verdict]


@dataclass(frozen=True, slots=True)
class StateChanges(Finding):
    """The second of two equal calls gives other outputs; `state` is what forward changes ("" where not known)."""

    outputs: tuple[str, ...]
    state: str
    code: str


@dataclass(frozen=True, slots=True)
class RandomOutput(Finding):
    """Outputs are drawn anew at every call, by the model and by the file."""

    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RandomOutputFrozen(Finding):
    """Outputs are drawn anew at every call by the model, and by the file never."""

    outputs: tuple[str, ...]
    training: bool
    code: str


@dataclass(frozen=True, slots=True)
class FileNotLoaded(Finding):
    """onnxruntime does not open the file, whatever its optimisers."""

    error: str


@dataclass(frozen=True, slots=True)
class NothingShown(Finding):
    """No trial speaks for the file: how many ended in what."""

    outcomes: Mapping[Outcome, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MostlyExcused(Finding):
    """In most ordinary trials most numbers differ, and are excused."""

    excused: int
    ordinary: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputNotCompared(Finding):
    """What all findings about an output have that no trial says anything of."""

    output: str


@dataclass(frozen=True, slots=True)
class OutputEmpty(OutputNotCompared):
    """An output was empty in every trial."""


@dataclass(frozen=True, slots=True)
class OutputStill(OutputNotCompared):
    """An output was the same in all trials that compare it."""

    trials: int


@dataclass(frozen=True, slots=True)
class OutputLost(OutputNotCompared):
    """An output is off by this share of what it varies by, and that is allowed."""

    far: float


@dataclass(frozen=True, slots=True)
class InputNotVaried(Finding):
    """An input had one value in every trial that agrees: the model refused this many others."""

    input: str
    refused: int


@dataclass(frozen=True, slots=True)
class WeightsDiffer(Finding):
    """A weight of the file is not the model's that comes nearest; and whether any trial shows it."""

    weight: str
    near: str
    words: str
    proof: str  # the trial that shows it; "" where none does
    changed: bool
    others: tuple[str, ...]
    cured: int  # trials that agree with the model's own numbers in their places
