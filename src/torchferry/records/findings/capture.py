"""What the capture stage notices: lines that stop it, conditions it relies on, and parts of a model that it cannot follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torchferry.records.finding import Finding
from torchferry.records.sites import Site, SiteKind


@dataclass(frozen=True, slots=True)
class CaptureStopped(Finding):
    """The line that stopped a capture: its code, what was said in one line and in full, and the dims that it fixed."""

    code: str
    text: str
    said: str
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataDependent(Finding):
    """A line that needs the value of a tensor or a plain size, and which kind of rewrite suits it ("none": no kind does)."""

    kind: SiteKind | Literal["none"]
    code: str
    text: str
    cleared: bool


@dataclass(frozen=True, slots=True)
class RewritesFound(Finding):
    """The rewrites under which the capture succeeds, all of them needed."""

    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class GuardNarrows(Finding):
    """A condition that the program relies on, sizes in the declared ranges at which it does not hold, and what may keep both."""

    guard: str
    sizes: Mapping[str, int]
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class HostRandom(Finding):
    """Forward draws from Python's or numpy's generator."""

    function: str


@dataclass(frozen=True, slots=True)
class ExportFlag(Finding):
    """The user's code asks whether it is being exported."""

    flag: str


@dataclass(frozen=True, slots=True)
class TransformersPatches(Finding):
    """The patches of transformers that were used, with what they are about; or why none could be."""

    fired: Mapping[str, str]
    missing: str = ""


@dataclass(frozen=True, slots=True)
class PartInTraining(Finding):
    """A part that acts otherwise in training mode is in it."""

    path: str
    type: str


@dataclass(frozen=True, slots=True)
class DropoutOn(Finding):
    """The program drops out although the model is in eval mode."""


@dataclass(frozen=True, slots=True)
class ScriptPart(Finding):
    """A part is compiled TorchScript."""

    type: str


@dataclass(frozen=True, slots=True)
class QuantisedPart(Finding):
    """A part is quantised for torch's own kernels."""

    type: str


@dataclass(frozen=True, slots=True)
class EncoderFastPath(Finding):
    """An nn.TransformerEncoder zeroes padded positions in eager alone."""


@dataclass(frozen=True, slots=True)
class Parametrised(Finding):
    """A part computes its weights anew at every call."""


@dataclass(frozen=True, slots=True)
class SparseTensor(Finding):
    """A part holds a sparse tensor."""

    name: str
    layout: str


@dataclass(frozen=True, slots=True)
class SparseFunction(Finding):
    """A line that makes or uses sparse tensors."""

    code: str


@dataclass(frozen=True, slots=True)
class NestedTensor(Finding):
    """A line that makes or uses nested tensors."""

    code: str


@dataclass(frozen=True, slots=True)
class GradientInside(Finding):
    """A line of forward that takes a gradient."""

    code: str
