"""Edits of the check stage: graph passes that mend a file, a file read as what it is, and feeds made to fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from torchferry.records import Edit
from torchferry.records.findings.file import FileKind
from torchferry.records.rewrites import SizeRewrite


@dataclass(frozen=True, slots=True)
class CheckEdit(Edit):
    """What is done so that a file opens, runs and gives what it should."""

    stage = "check"
    guess: str = field(default="", kw_only=True)  # why nothing shows it to be right, where it is only a guess


@dataclass(frozen=True, slots=True)
class CoerceFeeds(CheckEdit):
    """Feed what the file takes: names, types and axes as `torchferry.InferenceSession` fits them."""

    name = "coerce-feeds"


@dataclass(frozen=True, slots=True)
class ReadAs(CheckEdit):
    """Read a file as what it is, whatever it is packed in or called."""

    name = "read-as"
    kind: FileKind


@dataclass(frozen=True, slots=True)
class GraphPass(CheckEdit):
    """A change of the graph itself, made on a copy of the file."""


# --- versions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetIr(GraphPass):
    """Stamp another IR version."""

    name = "set-ir"
    to: int


@dataclass(frozen=True, slots=True)
class StampOpset(GraphPass):
    """Stamp the opset that the nodes are written for."""

    name = "stamp-opset"
    to: int
    domain: str = ""


@dataclass(frozen=True, slots=True)
class ConvertOpset(GraphPass):
    """Rewrite the model for another opset."""

    name = "convert-opset"
    to: int


@dataclass(frozen=True, slots=True)
class DropImports(GraphPass):
    """Take away the imports of domains from which no node comes."""

    name = "drop-imports"


@dataclass(frozen=True, slots=True)
class ModerniseOldForms(GraphPass):
    """Write the forms of opsets 1 to 6 as opset 7 has them."""

    name = "modernise-old-forms"
    to: int


# --- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelocateData(GraphPass):
    """Read weights from where they are: {written location: real one}."""

    name = "relocate-data"
    moves: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UniqueNodeNames(GraphPass):
    """Give each node that shares its name with an earlier one a name of its own."""

    name = "unique-node-names"


@dataclass(frozen=True, slots=True)
class RenameShadowed(GraphPass):
    """Give values of subgraphs that bear the name of an outer value a name of their own."""

    name = "rename-shadowed"


@dataclass(frozen=True, slots=True)
class DropRepeatedNodes(GraphPass):
    """Take away nodes that compute, under the same names, what an earlier node computes already."""

    name = "drop-repeated-nodes"


@dataclass(frozen=True, slots=True)
class RenameOutput(GraphPass):
    """Give a value the name under which the graph promises it."""

    name = "rename-output"
    value: str
    output: str


# --- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CastOperands(GraphPass):
    """Cast operands of a node."""

    name = "cast-operands"
    node: str
    values: tuple[str, ...]
    to: str


@dataclass(frozen=True, slots=True)
class CastBranches(GraphPass):
    """Cast an output of the branches of an If to one type."""

    name = "cast-branches"
    node: str
    index: int
    to: str


@dataclass(frozen=True, slots=True)
class CastCarried(GraphPass):
    """Let a Loop or Scan carry a value in one type."""

    name = "cast-carried"
    node: str
    index: int
    to: str


@dataclass(frozen=True, slots=True)
class OtherType:
    """A node to be computed in another type: by Casts before inputs of it, or by its own attribute; and a Cast behind it."""

    node: str
    how: Literal["cast", "attribute"] = "cast"
    attribute: str = ""
    from_: str = ""
    to: str = ""
    inputs: tuple[str, ...] = ()  # none: all that are of the type
    places: tuple[int, ...] = ()  # of these inputs, as one value may stand in two; none: wherever they stand


@dataclass(frozen=True, slots=True)
class CastAround(GraphPass):
    """Compute nodes in types that have a kernel; the rest keeps its types."""

    name = "cast-around"
    nodes: tuple[OtherType, ...]


@dataclass(frozen=True, slots=True)
class Retype(GraphPass):
    """Compute in another type throughout; inputs and outputs keep theirs."""

    name = "retype"
    from_: str
    to: str


@dataclass(frozen=True, slots=True)
class DeclareTypes(GraphPass):
    """Declare each output with the type that its node gives."""

    name = "declare-types"


# --- nodes, shapes and signs ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decompose(GraphPass):
    """Write nodes out in simpler operators."""

    name = "decompose"
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InlineBranch(GraphPass):
    """Put the branch of an If that is always taken in the place of the If."""

    name = "inline-branch"
    node: str
    condition: bool


@dataclass(frozen=True, slots=True)
class TransposeOperand(GraphPass):
    """Flip transA or transB of a Gemm."""

    name = "transpose-operand"
    node: str
    attribute: str


@dataclass(frozen=True, slots=True)
class RewriteConstants(GraphPass):
    """Compute constants that hold an example's sizes, in order."""

    name = "rewrite-constants"
    rewrites: tuple[SizeRewrite, ...]
    example: Mapping[str, tuple[int, ...]]  # the sizes at which both files can be compared


@dataclass(frozen=True, slots=True)
class FreeSizes(GraphPass):
    """Declare axes as free, {value: {axis: name}}, and compute the constants that hold their former sizes."""

    name = "free-sizes"
    axes: Mapping[str, Mapping[str, str]]
    rewrites: tuple[SizeRewrite, ...]
    example: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ZeroMaskedRows(GraphPass):
    """Let a softmax over nothing but -inf give zeros."""

    name = "zero-masked-rows"
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlipWeights(GraphPass):
    """Let products of 8-bit integers read their weights as the other 8-bit type."""

    name = "flip-weights"
    nodes: tuple[str, ...]
