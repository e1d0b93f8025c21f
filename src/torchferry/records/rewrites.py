"""What stands in the place of a constant that holds an example's size: planned by a search, carried out by a graph pass."""

from __future__ import annotations

from dataclasses import dataclass

Number = bool | int | float | str  # as JSON can hold it: "inf" and "nan" are no numbers there


class Variant:
    """One of several classes that a field may hold: stored with its name, so that it can be read again."""

    __slots__ = ()


# --- sizes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeOf(Variant):
    """The size of a value of the graph along one axis."""

    value: str
    axis: int


@dataclass(frozen=True, slots=True)
class Product(Variant):
    """All factors together."""

    factors: tuple[SizeTerm, ...]


@dataclass(frozen=True, slots=True)
class Quotient(Variant):
    """A size divided by a number."""

    size: SizeTerm
    by: int


@dataclass(frozen=True, slots=True)
class Difference(Variant):
    """A size less a number."""

    size: SizeTerm
    by: int


SizeTerm = int | SizeOf | Product | Quotient | Difference
Sizes = tuple[SizeTerm, ...]

# --- how a constant may have been made -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filled(Variant):
    """One value everywhere."""

    sizes: Sizes
    type: str
    fill: Number


@dataclass(frozen=True, slots=True)
class Repeated(Variant):
    """The same along some axes."""

    sizes: Sizes
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Counted(Variant):
    """first, first + step, ... along one axis."""

    sizes: Sizes
    type: str
    axis: int
    first: int
    step: int


@dataclass(frozen=True, slots=True)
class Triangle(Variant):
    """One value on and on one side of a diagonal of the last two axes, another one beyond: a causal mask."""

    sizes: Sizes
    type: str
    inside: Number
    outside: Number
    diagonal: int


Pattern = Filled | Repeated | Counted | Triangle

# --- rewrites ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewShape(Variant):
    """Give a Reshape, Expand or Split a second input made of sizes, a Resize a fourth."""

    node: str
    sizes: Sizes
    input: int = 1


@dataclass(frozen=True, slots=True)
class AllowZero(Variant):
    """Let a 0 in the target of a Reshape stand for no elements."""

    node: str


@dataclass(frozen=True, slots=True)
class EqualParts(Variant):
    """Split into equal parts, whatever the size."""

    node: str


@dataclass(frozen=True, slots=True)
class AtMost(Variant):
    """Let TopK take at most as many as there are along an axis."""

    node: str
    axis: int


@dataclass(frozen=True, slots=True)
class ToTheEnd(Variant):
    """Let a Slice end where the given numbers say."""

    node: str
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DropInputs(Variant):
    """Leave out optional inputs whose default is what they held."""

    node: str
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MadeConstant(Variant):
    """Read, in place of a constant, one made for the sizes at hand."""

    node: str
    value: str
    pattern: Pattern


SizeRewrite = NewShape | AllowZero | EqualParts | AtMost | ToTheEnd | DropInputs | MadeConstant
