"""What the check stage notices in a graph before it is run: its names and edges, its types, and operators without a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torchferry.records.finding import Finding
from torchferry.records.signature import Size

# --- its graph -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DuplicateNodeName(Finding):
    """Several nodes, of these operators, share a name."""

    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueDefinedTwice(Finding):
    """A value is made twice; by the same computation, or not."""

    value: str
    nodes: tuple[str, ...]
    same: bool


@dataclass(frozen=True, slots=True)
class ShadowedName(Finding):
    """A subgraph defines a value that the graph around it has too."""

    value: str
    subgraph: str


@dataclass(frozen=True, slots=True)
class DanglingInput(Finding):
    """A node reads what nobody makes; the hint names what it may mean."""

    value: str
    hint: str


@dataclass(frozen=True, slots=True)
class DanglingOutput(Finding):
    """An output is made by no node; `spare` are values that nobody reads, `take` the only one of them."""

    value: str
    spare: tuple[str, ...]
    take: str | None


@dataclass(frozen=True, slots=True)
class GraphCycle(Finding):
    """Nodes need each other's results."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecursiveFunctions(Finding):
    """Functions of the model call themselves."""

    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InitializerType(Finding):
    """A tensor has an element type that does not exist."""

    tensor: str
    type: int


@dataclass(frozen=True, slots=True)
class InitializerSize(Finding):
    """A tensor has another number of bytes than its dims need; it is kept in another file where they are None."""

    tensor: str
    has: int
    needs: int
    dims: tuple[int, ...] | None = None
    type: str = ""


@dataclass(frozen=True, slots=True)
class DuplicateInitializer(Finding):
    """Several initializers share a name; they hold the same numbers, or not."""

    tensor: str
    count: int
    same: bool


@dataclass(frozen=True, slots=True)
class ShapeConflict(Finding):
    """The shapes that reach a node do not fit; `weights` are stored, `flip` is the flag that would make them fit."""

    shapes: Mapping[str, tuple[Size, ...]]
    weights: tuple[str, ...]
    text: str
    flip: str | None


@dataclass(frozen=True, slots=True)
class DeadBranch(Finding):
    """The condition of an If is settled, so that one branch never runs."""

    condition: bool
    input: str


# --- its types -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeConflict(Finding):
    """Operands that must be of one type are not: {value: type}; those in `cast` should give way, where a cast means the same."""

    types: Mapping[str, str]
    cast: tuple[str, ...]
    to: str
    castable: bool


@dataclass(frozen=True, slots=True)
class TypeNotAllowed(Finding):
    """An operator does not take the type of its input: what it does take, what would do, and the opset that takes it."""

    value: str
    parameter: str
    type: str
    allowed: tuple[str, ...]
    to: str | None
    lossless: bool
    back: bool  # the result has to be cast back
    newer: int | None


@dataclass(frozen=True, slots=True)
class DeclaredTypeWrong(Finding):
    """A value, perhaps an output, is declared in another type than its node gives."""

    value: str
    declared: str
    real: str
    output: bool
    op: str


@dataclass(frozen=True, slots=True)
class BranchTypesDiffer(Finding):
    """The branches of an If give an output in different types."""

    output: str
    index: int
    types: tuple[str, ...]
    to: str


@dataclass(frozen=True, slots=True)
class CarriedTypesDiffer(Finding):
    """A Loop or Scan carries a value in several types."""

    value: str
    index: int
    types: tuple[str, ...]
    to: str


# --- what the runtime has --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnknownOperator(Finding):
    """A node is of an operator that nobody knows; `functions` is how many the model brings along."""

    op: str
    domain: str
    functions: int


@dataclass(frozen=True, slots=True)
class AtenOperator(Finding):
    """A node is an operator of PyTorch's, which can be written out in ONNX or not."""

    operator: str
    recipe: bool = False


@dataclass(frozen=True, slots=True)
class NewerOpset:
    """The node can be had by an opset that has a kernel for it."""

    to: int


@dataclass(frozen=True, slots=True)
class ModernForm:
    """The node can be had in the form of a newer opset."""


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """The node can be had in simpler operators."""


@dataclass(frozen=True, slots=True)
class OtherAttribute:
    """The node can be had with another type in an attribute, and a cast behind it."""

    attribute: str
    was: str
    to: str


@dataclass(frozen=True, slots=True)
class ComputedInOtherType:
    """The node can be had with inputs (by name, and by place) cast from one type to another, and a cast back behind it."""

    was: str
    to: str
    inputs: tuple[str, ...]
    places: tuple[int, ...]


Instead = NewerOpset | ModernForm | WrittenOut | OtherAttribute | ComputedInOtherType


@dataclass(frozen=True, slots=True)
class NoKernel(Finding):
    """The runtime has no implementation of a node for these types; and how it can be had all the same."""

    op: str
    domain: str
    since: int | None
    types: tuple[str, ...]
    instead: Instead | None


@dataclass(frozen=True, slots=True)
class RuntimeRefused(Finding):
    """The runtime refuses the file, in its own words; they may name a tensor."""

    text: str
    tensor: str | None = None


@dataclass(frozen=True, slots=True)
class ProductCutOff(Finding):
    """Products of 8-bit integers come out wrong on this processor: what is right, what is given, whether it can be mended."""

    product: str
    nodes: tuple[str, ...]
    want: float
    got: float | None
    mended: bool
