"""What can be said at once of a feed that failed: held against what the file declares and against the certificate in it.

Nothing is opened, run or read from disk here, so that a refused feed costs a server little more than onnxruntime's own error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from torchferry import intake
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY
from torchferry.check.running.feeds import Declared, misfits, turned
from torchferry.check.running.hazards import disagreeing
from torchferry.check.types import dtypes
from torchferry.errors import FileRefused
from torchferry.records import Finding, Location
from torchferry.records.documents import Certificate
from torchferry.records.findings import (
    FeedBfloat16,
    FeedByteOrder,
    FeedDtype,
    FeedDtypeRefused,
    FeedExtra,
    FeedFinding,
    FeedMissingRefused,
    FeedName,
    FeedNotAnArray,
    FeedNotAnArrayRefused,
    FeedRank,
    FeedRankRefused,
    FixedSize,
    SizesDisagree,
)

if TYPE_CHECKING:
    from torchferry.catalogue.finding_rule import FindingRule

# The codes of the catalogue, which takes a third of a second to load.
CODES: dict[type[FeedFinding], str] = {
    FeedName: "RUN001",
    FeedExtra: "RUN002",
    FeedMissingRefused: "RUN003",
    FeedDtype: "RUN004",
    FeedDtypeRefused: "RUN005",
    FeedNotAnArray: "RUN006",
    FeedNotAnArrayRefused: "RUN007",
    FeedByteOrder: "RUN008",
    FeedBfloat16: "RUN009",
    FeedRank: "RUN010",
    FeedRankRefused: "RUN011",
}
# Words that onnxruntime has for the same thing, for those who look for them in the message.
LIKE: dict[type[FeedFinding], str] = {
    FeedRankRefused: " (invalid rank)",
    FeedDtypeRefused: " (unexpected data type)",
    FeedMissingRefused: " (required inputs are missing)",
}
MOST_CAUSES = 64  # whose words are kept: a client that is refused sends the same sizes again
MOST = 3  # lines of one kind; a cache of fifty inputs says fifty times the same


@dataclass(frozen=True, slots=True)
class Certified:
    """What the certificate in a file says of one axis: the sizes that it was given for, and the words for them."""

    input: str
    axis: int
    low: float
    high: float
    words: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file expects of feeds, laid out so that holding one against it takes microseconds: a decoder has fifty inputs."""

    declared: tuple[Declared, ...]
    types: tuple[tuple[str, np.dtype], ...]
    fixed: tuple[Declared, ...]  # those with a size that does not move
    certified: tuple[Certified, ...]
    said: dict[Any, tuple[str, ...]] = field(default_factory=dict, compare=False)  # of sizes that were refused before

    @classmethod
    def of(cls, declared: tuple[Declared, ...], metadata: Mapping[str, str], strict: bool) -> Expected:
        """Return what a file's declarations and the certificate in its metadata say; of types only where none is coerced."""
        wanted = [(d.name, dtypes.of_text(d.type)) for d in declared] if strict else []
        types = tuple((name, want) for name, want in wanted if want is not None and want.kind != "O")
        fixed = tuple(d for d in declared if any(isinstance(size, int) for size in d.shape or ()))
        return cls(declared, types, fixed, _certified(metadata))


def _certified(metadata: Mapping[str, str]) -> tuple[Certified, ...]:
    """Return what a file's certificate says of its inputs' sizes; nothing where it has none, or a malformed one."""
    try:
        held = intake.told(Certificate, metadata.get(CERTIFICATE_KEY, ""), CERTIFICATE_KEY)
    except FileRefused:
        return ()
    found = []
    for name, (_, shape) in held.inputs.items():
        for axis, size in enumerate(shape):
            if isinstance(size, str) and size in held.ranges:
                low, high = held.ranges[size]
                found.append(Certified(name, axis, low, np.inf if high is None else high, held.dims.get(size, size)))
    return tuple(found)


def words(expected: Expected, feed: Mapping[str, Any]) -> str:
    """Return what a feed has against what the file expects, in words; nothing where it has nothing."""
    shapes = {n: v.shape if type(v) is np.ndarray else _shape(v) for n, v in feed.items()}
    cause = (*shapes, *shapes.values())
    if cause not in expected.said:
        if len(expected.said) >= MOST_CAUSES:
            expected.said.clear()
        expected.said[cause] = _of_sizes(expected, shapes)
    return "\n".join((*islice(_types(expected.types, feed), MOST), *expected.said[cause]))


def _of_sizes(expected: Expected, shapes: Mapping[str, tuple[int, ...] | None]) -> tuple[str, ...]:
    fixed = [_rule_words(f) for f in islice(_fixed(expected.fixed, shapes), MOST)]
    tied = [] if fixed else [_rule_words(f) for f in islice(disagreeing(expected.declared, shapes), MOST)]
    return (*fixed, *tied, *islice(_beyond(expected.certified, shapes), MOST))


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an array, or of an OrtValue, whose bytes may lie on another device; None where there is none."""
    if isinstance(value, np.ndarray):
        return value.shape
    return tuple(value.shape()) if type(value).__name__ == "OrtValue" and value.is_tensor() else None


def _types(types: Sequence[tuple[str, np.dtype]], feed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the inputs of another type than the file's; onnxruntime does not name them."""
    for name, want in types:
        got = getattr(feed.get(name), "dtype", want)
        if got is not want and isinstance(got, np.dtype) and got != want:
            yield f"{CODES[FeedDtype]}: `{name}` is {got}, the file takes {dtypes.friendly(want)}"


def _fixed(declared: Sequence[Declared], shapes: Mapping[str, tuple[int, ...] | None]) -> Iterator[FixedSize]:
    for spec in declared:
        shape = shapes.get(spec.name)
        for axis in misfits(spec, shape):
            assert shape is not None
            where = Location(input_name=spec.name)
            yield FixedSize(axis, (spec.shape or ())[axis], shape[axis], turned(spec, shape), plan=None, location=where)


def _beyond(known: Sequence[Certified], shapes: Mapping[str, tuple[int, ...] | None]) -> Iterator[str]:
    """Yield the sizes that the certificate does not speak for. They forbid no run; one that failed may have failed for them."""
    for size in known:
        shape = shapes.get(size.input) or ()
        if size.axis < len(shape) and not size.low <= shape[size.axis] <= size.high:
            upto = "" if size.high == np.inf else f"{size.high:g}"
            yield (
                f"dim {size.axis} of `{size.input}` is {shape[size.axis]}; "
                f"the certificate in the file is for {size.low:g}..{upto} ({size.words})"
            )


def _rule_words(finding: FixedSize | SizesDisagree) -> str:
    rule = _rules()[type(finding)]
    return f"{rule.code}: {rule.message(finding)}\n  help: {rule.help(finding)}"


@cache
def _rules() -> dict[type[Finding], FindingRule[Any]]:
    """Return the two rules of the catalogue that are asked here, without loading the others."""
    from torchferry.catalogue.runtime.fixed_size_fed_another import FixedSizeFedAnother
    from torchferry.catalogue.runtime.sizes_disagree import SizesDisagree as Disagreeing

    return {FixedSize: FixedSizeFedAnother(), SizesDisagree: Disagreeing()}
