"""What was compared with the eager model: trials, what they cover, and the ranges over which a file was shown to hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from torchferry.records.job import Tolerance

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Difference:
    """Two outputs that are not the same, and in what."""

    output: str
    what: Literal["shape", "dtype", "nan", "inf", "value", "count", "refused"]
    words: str  # "off by 0.031 at [0, 17], allowed 0.001"
    max_abs: float = 0.0
    max_rel: float = 0.0
    at: tuple[int, ...] = ()
    ratio: float = 0.0  # worst difference over what is allowed there; at most 1 when all is well


Outcome = Literal[
    "agree",
    "differ",
    "file-refused",
    "eager-refused",  # no evidence: the model itself does not take this
    "beyond-range",  # they differ, at values that the model need not take (infinities, or where eager itself overflows)
    "ill-conditioned",  # they differ by rounding, as was shown for each number
    "padding-only",  # they differ, at padded positions alone
    "tie-order",  # they differ in the order of equal keys
    "random",  # values are drawn anew at every call
    "too-large",  # the file runs out of the memory that a trial may take
    "undetermined",  # they differ where an operator of torch's has no single answer, in eager either
    "eager-cut-off",  # they differ where a kernel of torch's cuts sums off at 16 bits, and the file gives what these come to
]


FAILING: tuple[Outcome, ...] = ("differ", "file-refused")
# A difference that is rounding was shown to be, number by number: that is agreement as far as floats go.
SHOWING: tuple[Outcome, ...] = ("agree", "ill-conditioned", "padding-only", "tie-order", "random")


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of the file with the eager model, in a form that can be run again."""

    name: str  # "batch_size=3, values=left-padded"
    sizes: Mapping[str, int]
    values: str
    seed: int
    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    worst: float = 0.0  # largest ratio of difference to allowance
    max_abs: float = 0.0
    seconds: float = 0.0
    note: str = ""
    excused: float = 0.0  # the share of its elements that differ for another reason than rounding
    call: tuple[torch.Tensor, ...] | None = None  # the tensors, where a search found them and no name makes them again
    weights: int = 0  # which draw of redrawn weights both sides had; 0: the model's own


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a verdict stands on: of what there is, how much the trials have shown; and what they have not, by name.

    A weight is the model's byte for byte (`equal`), or what eager or a known fold makes of the model's (`computed`), or at
    least one that no trial would have let pass had it been another (`reached`).
    """

    weights: int = 0
    equal: int = 0
    computed: int = 0
    reached: int = 0
    outputs: int = 0
    varied: int = 0
    values: int = 0  # inside the file, that hang on values of its inputs
    moved: int = 0
    sides: int = 0  # of comparisons, conditions and clips, in the file and in eager
    taken: int = 0
    mutants: int = 0
    noticed: int = 0
    redrawn: int = 0  # trials with redrawn weights that agree
    not_shown: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()  # what was left out, and why


def sizes_shown(trials: Iterable[Trial]) -> dict[str, tuple[int, ...]]:
    """Return, for each dim, the sizes at which the file was seen to agree: what reports, results and certificates go by."""
    found: dict[str, set[int]] = {}
    for trial in trials:
        for name, size in trial.sizes.items() if trial.outcome in SHOWING else ():
            found.setdefault(name, set()).add(size)
    return {name: tuple(sorted(sizes)) for name, sizes in found.items()}


def ranges_shown(trials: Iterable[Trial]) -> dict[str, tuple[int, int | None]]:
    """Return, for each dim, the smallest and the largest size at which the file was seen to agree."""
    return {name: (sizes[0], sizes[-1]) for name, sizes in sizes_shown(trials).items()}


@dataclass(frozen=True, slots=True)
class Verified:
    """Stage 5's answer: the trials, what was allowed, and the ranges over which the file was shown to hold."""

    trials: tuple[Trial, ...]
    tolerance: Tolerance
    ranges: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials that show the file to be wrong."""
        return tuple(t for t in self.trials if t.outcome in FAILING)

    @property
    def shown(self) -> bool:
        """Whether any trial says something for the file: one that eager refuses, or that no model need pass, does not."""
        return any(t.outcome in SHOWING for t in self.trials)


@dataclass(frozen=True, slots=True)
class Padding:
    """How far the logits after a text move when it is padded, in the model and in the graph; and how far they may by rounding."""

    left: tuple[float, float]  # of the model, of the graph: as a multiple of what is allowed
    right: tuple[float, float]

    def words(self) -> str:
        """Return what was measured, in words."""
        moves = {side: max(far) for side, far in (("left", self.left), ("right", self.right)) if max(far) > 1}
        if not moves:
            return "padding: a text gets the same answer alone, padded on the left and padded on the right (measured)"
        where = " and ".join(moves)
        own = all(far[0] > 1 for side, far in (("left", self.left), ("right", self.right)) if side in moves)
        whose = "in the model as in the file" if own else "in the file, and not in the model"
        advice = "" if len(moves) > 1 else f"; pad on the {'right' if 'left' in moves else 'left'}"
        return f"padding: padded on the {where} a text gets another answer than alone, {whose} (measured){advice}"


@dataclass(frozen=True, slots=True)
class Generated:
    """Stage 6's answer: the texts that a finished directory and the model were asked to write, and what padding does to them."""

    path: Path  # the graph in that directory
    trials: tuple[Trial, ...]
    ranges: Mapping[str, tuple[int, int | None]]  # over which the file was shown to hold, by these trials and by those before
    padding: Padding | None = None

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The texts that show the file to be wrong."""
        return tuple(t for t in self.trials if t.outcome in FAILING)
