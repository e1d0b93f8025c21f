"""What the check stage notices when a file is run: feeds that do not fit, nodes that fail, runs that go wrong in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchferry.records.finding import Finding
from torchferry.records.rewrites import SizeRewrite
from torchferry.records.signature import Size

if TYPE_CHECKING:
    from numpy.typing import NDArray

Shapes = Mapping[str, tuple[int, ...]]

# --- feeds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeedFinding(Finding):
    """What all findings about a feed have: what does not fit, in words. Those that end in Refused only the user can mend."""

    words: str


@dataclass(frozen=True, slots=True)
class FeedName(FeedFinding):
    """It was fed under another name."""


@dataclass(frozen=True, slots=True)
class FeedExtra(FeedFinding):
    """The file has no such input."""


@dataclass(frozen=True, slots=True)
class FeedNotAnArray(FeedFinding):
    """It had to be turned into an array."""


@dataclass(frozen=True, slots=True)
class FeedByteOrder(FeedFinding):
    """It is in foreign byte order."""


@dataclass(frozen=True, slots=True)
class FeedBfloat16(FeedFinding):
    """It is bfloat16, which onnxruntime does not take from numpy."""


@dataclass(frozen=True, slots=True)
class FeedDtype(FeedFinding):
    """It is of another element type."""


@dataclass(frozen=True, slots=True)
class FeedRank(FeedFinding):
    """It lacks an axis."""


@dataclass(frozen=True, slots=True)
class FeedMissingRefused(FeedFinding):
    """An input is not fed."""


@dataclass(frozen=True, slots=True)
class FeedNotAnArrayRefused(FeedFinding):
    """It cannot be turned into an array."""


@dataclass(frozen=True, slots=True)
class FeedDtypeRefused(FeedFinding):
    """Another element type would lose something."""


@dataclass(frozen=True, slots=True)
class FeedRankRefused(FeedFinding):
    """It has another rank, and no axis of size 1 makes it fit."""


@dataclass(frozen=True, slots=True)
class SizesDisagree(Finding):
    """A size is not what the file ties it to: an expression, or the size of another input under the same name."""

    axis: int
    says: str
    wants: int
    got: int
    other: str | None = None
    other_axis: int | None = None


@dataclass(frozen=True, slots=True)
class MovingSizes:
    """How to let sizes move: the axes to free, the rewrites, why that is a guess ("": shown), and the shapes of two feeds."""

    axes: Mapping[str, Mapping[str, str]]
    rewrites: tuple[SizeRewrite, ...]
    guess: str
    example: Shapes
    fed: Shapes


@dataclass(frozen=True, slots=True)
class FixedSize(Finding):
    """An input's size is fixed in the file and fed otherwise; `turned`: the declared sizes are fed in another order."""

    axis: int
    declared: Size | None
    got: int
    turned: bool
    plan: MovingSizes | None


# --- nodes that fail ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """What the runtime said, the shapes that reached the node, and the graph's inputs that they come from."""

    text: str
    shapes: Shapes = field(default_factory=dict)
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFailed(Finding):
    """What all findings about a node that fails have."""

    failure: NodeFailure


@dataclass(frozen=True, slots=True)
class RunFailed(NodeFailed):
    """No cause is known."""


@dataclass(frozen=True, slots=True)
class RuntimeDied(NodeFailed):
    """The runtime crashed, or hung; where it opened the file, or ran it."""


@dataclass(frozen=True, slots=True)
class IndexOutOfRange(NodeFailed):
    """A value, at a place of what is looked up, is beyond the rows of a table; `input` is it, if it was fed as it is."""

    table: str
    rows: int
    value: int
    at: tuple[int, ...]
    input: str | None
    fed: Shapes
    hidden: bool = False  # onnxruntime's optimiser hides it


@dataclass(frozen=True, slots=True)
class EmptyAxis(NodeFailed):
    """An axis of a value has size 0, because of what was fed."""

    empty: str
    axis: int
    fed: Shapes


@dataclass(frozen=True, slots=True)
class DivisionByZero(NodeFailed):
    """Integers are divided by zero; `zero` are the inputs that hold one."""

    divisor: str
    zero: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllocationTooLarge(NodeFailed):
    """A node asks for too many bytes (None: not said); the small integers that reach it, the largest of each input behind it."""

    bytes: int | None
    sizes: Mapping[str, Sequence[int]]
    large: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ConditionNotScalar(NodeFailed):
    """The condition of an If or Loop has not exactly one element."""

    condition: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BakedSize(NodeFailed):
    """A node fails, or is wrong without a word, because sizes of an example are baked into constants."""

    plan: MovingSizes
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class SizeSuspected(Finding):
    """A feed that fails, or that comes out wrong without a word (`hidden`), perhaps for sizes of an example that are baked in.

    It is what the stage says to the search, which puts `FixedSize` with a plan or `BakedSize` in its place, or what is said
    without one: nothing where it is hidden.
    """

    feed: Mapping[str, NDArray[Any]] = field(compare=False, repr=False)  # as it was run
    said: tuple[FixedSize | NodeFailed, ...]
    good: tuple[Mapping[str, NDArray[Any]], ...] = field(default=(), compare=False, repr=False)  # feeds that run
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class MadeFeedFails(Finding):
    """No feed that was made from the declarations runs."""

    text: str
    sizes: Shapes


@dataclass(frozen=True, slots=True)
class NoFeedMade(Finding):
    """No feed is made from the declarations, for a reason in words."""

    why: str


# --- runs that go wrong in silence -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NanAppears(Finding):
    """A node is the first to give NaN."""

    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaskedRowNan(Finding):
    """A Softmax gives NaN for rows that are masked throughout; so do `nodes`, and PyTorch's attention made it, or not."""

    row: tuple[int, ...]  # the first
    count: int
    nodes: tuple[str, ...]
    attention: bool
