"""What torchferry writes into files of its own beside and inside a model, and therefore all that it reads from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from torchferry.records.evidence import Coverage
from torchferry.records.job import Tolerance


@dataclass(frozen=True, slots=True)
class Within:
    """The range of a number, of a list's length; or the form of a text."""

    low: float = 0
    high: float = 1 << 31
    form: str = ""

    def holds(self, value: Any) -> bool:
        """Whether a value is in it."""
        if isinstance(value, str):
            return re.fullmatch(self.form, value) is not None
        return self.low <= (value if isinstance(value, int | float) else len(value)) <= self.high

    def __str__(self) -> str:
        return f"of the form {self.form}" if self.form else f"{self.low:g}..{self.high:g}"


Name = Annotated[str, Within(form=r"\w{1,100}")]  # of an optimiser of onnxruntime's
Count = Annotated[int, Within()]


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session sets for a directory's graphs to be right. No option that names a file, and no library, is among it."""

    level: Literal["all", "extended", "basic", "none"] = "all"
    disabled: Annotated[tuple[Name, ...], Within(0, 200)] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What quantising changed, over some texts: the share of positions with the same next token, and how far logits moved."""

    precision: str
    positions: Count
    same_token: Annotated[float, Within(0, 1)]  # share of positions where the likeliest next token is the same
    mean_difference: float  # of a logit, in units of the logits' own standard deviation
    worst_difference: float  # likewise
    block: Count = 0  # how many weights share a scale; 0: each has all its digits
    spared: tuple[str, ...] = ()  # products that were left exact
    instruction_sets: tuple[str, ...] = ()  # of the processor that it was measured on

    def __str__(self) -> str:
        exact = f", {len(self.spared)} product{'s' if len(self.spared) > 1 else ''} left exact" if self.spared else ""
        form = f" (a scale for each {self.block} weights{exact})" if self.block else ""
        return (
            f"{self.precision}{form}: "
            f"the likeliest next token is the same at {self.same_token:.1%} of {self.positions} positions; "
            f"logits moved by {self.mean_difference:.3f} of their spread on average, {self.worst_difference:.3f} at worst"
            + (f"; measured with {', '.join(self.instruction_sets)}" if self.instruction_sets else "")
        )


@dataclass(frozen=True, slots=True)
class DirectoryRecord:
    """`torchferry.json`, beside the graphs of a directory that generates."""

    task: str
    longest: Annotated[int | None, Within(1)] = None  # text, in tokens
    settings: SessionSettings = SessionSettings()
    quantised: Cost | None = None


@dataclass(frozen=True, slots=True)
class SessionMetadata:
    """`pkg.torchferry.session`, inside a file."""

    disabled_optimizers: Annotated[tuple[Name, ...], Within(0, 200)] = ()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells a file from any other."""

    graph: str
    weights: str
    opsets: Mapping[str, int]
    ir_version: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """`pkg.torchferry.certificate`, inside a file: what was shown of it, and of which file."""

    dims: Mapping[str, str]
    inputs: Mapping[str, tuple[str, tuple[int | str, ...]]]
    fixed: Mapping[str, str]
    conditions: tuple[str, ...]
    given_up: tuple[str, ...]
    ranges: Mapping[str, tuple[int, int | None]]
    trials: Mapping[str, Count]
    sizes_tried: Mapping[str, tuple[int, ...]]
    tolerance: Tolerance
    worst: float
    repairs: tuple[str, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    fingerprint: Fingerprint
    values: str = ""
    coverage: Coverage = field(default_factory=Coverage)
    instruction_sets: tuple[str, ...] = ()
