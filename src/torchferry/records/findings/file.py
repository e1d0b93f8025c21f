"""What the check stage notices in a file: what it is, its stamps, its weights, and what repairs of it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchferry.records.finding import Finding

# --- what the file is ------------------------------------------------------------------------------

FileKind = Literal[
    "onnx",
    # no model
    "git-lfs-pointer", "web-page", "torch-checkpoint", "safetensors", "other-format", "xml", "zip", "tar", "json", "text",
    "directory", "missing", "unreadable", "not-a-model",
    # a model, in another wrapping
    "gzip", "bzip2", "xz", "zip-with-model", "tar-with-model", "text-proto", "model-as-json", "onnx-text", "ort-format",
    "onnx-named-ort",
    # what is left of a model
    "truncated", "damaged", "empty", "no-graph", "over-two-gigabytes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a file is ("onnx" for a model) and what was seen that tells; None where nothing of the sort was."""

    kind: FileKind
    size: int | None = None
    needs: int | None = None  # bytes that a whole file would have
    at: int | None = None  # the byte at which it is no model any more
    path: str | None = None
    title: str | None = None
    format: str | None = None
    member: str | None = None
    members: tuple[str, ...] | None = None
    inside: tuple[str, ...] | None = None  # the models in a directory
    tensors: int | None = None
    begins: str | None = None
    what: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class NotAModel(Finding):
    """The file of this name is no ONNX model as it stands."""

    name: str
    file: Sniffed


@dataclass(frozen=True, slots=True)
class DocumentRefused(Finding):
    """A document beside or inside a model says what torchferry does not take from a file."""

    document: str  # its path, or the key of the metadata that it stands under
    why: str
    harmless: bool = False  # the model is used all the same


# --- its stamps ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IrTooNew(Finding):
    """The target reads IR versions up to `most`."""

    ir: int
    most: int
    target: str


@dataclass(frozen=True, slots=True)
class IrMissing(Finding):
    """There is no IR version; `to` would do."""

    to: int


@dataclass(frozen=True, slots=True)
class OpsetTooNew(Finding):
    """The target knows opsets of a domain ("": the standard's own) up to `most`; `changed` are operators that differ between."""

    opset: int
    most: int
    target: str
    changed: tuple[str, ...] = ()
    domain: str = ""


@dataclass(frozen=True, slots=True)
class OpsetMissing(Finding):
    """There is no opset for the standard operators; `to` is one under which every node is valid, where there is one."""

    to: int | None


@dataclass(frozen=True, slots=True)
class UnusedImport(Finding):
    """An opset is imported for a domain that no node is of."""

    domain: str
    version: int


@dataclass(frozen=True, slots=True)
class NodeNotInOpset(Finding):
    """A node is not written as the stamped opset has it; `fits` is the nearest opset under which all nodes are valid."""

    why: str
    stamped: int
    fits: int | None
    keeps: bool  # what all nodes mean
    recipe: bool = False  # it can be written out in other operators


# --- weights kept in other files -------------------------------------------------------------------

PathTrouble = Literal["missing", "absolute", "backslash", "outside", "empty"]


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A data file as the model names it, the tensors that are kept there, and how many bytes they need."""

    data: str
    tensors: tuple[str, ...]
    needs: int


@dataclass(frozen=True, slots=True)
class WeightsMissing(Finding):
    """The data file is not there."""

    weights: WeightsFile


@dataclass(frozen=True, slots=True)
class WeightsElsewhere(Finding):
    """The data file is not there, or not where a runtime may read; `found` is what it may be, `guess` why it may not be."""

    weights: WeightsFile
    trouble: PathTrouble
    found: str | None
    guess: str


@dataclass(frozen=True, slots=True)
class WeightsAreText(Finding):
    """The data file is text, which onnxruntime reads as weights where it is long enough."""

    weights: WeightsFile


@dataclass(frozen=True, slots=True)
class WeightsArePointer(WeightsAreText):
    """The data file is a git-lfs pointer."""


@dataclass(frozen=True, slots=True)
class WeightsArePage(WeightsAreText):
    """The data file is a web page."""


@dataclass(frozen=True, slots=True)
class WeightsTruncated(Finding):
    """The data file is too short for some tensors."""

    weights: WeightsFile
    size: int
    short: tuple[str, ...]


# --- what repairs did ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MendNotShown(Finding):
    """Nothing shows that a mend is right."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class OutputsChanged(Finding):
    """A mended file gives something else than the original for a feed."""

    feed: int
    words: str
