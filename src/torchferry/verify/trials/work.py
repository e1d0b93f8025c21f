"""How much work a call is: multiply-adds of its operators, counted and not timed, and how they grow with each size.

What is tried hangs on this alone, so that a slow or busy machine sees no less of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchferry import eager
from torchferry.records import Bound
from torchferry.verify.run.eager_trace import Tape, record

CALL = 20_000  # multiply-adds in the time that it takes to call an operator
GLANCE = 2e9  # multiply-adds that a look at a larger size may cost
FACTORS = (8, 2)  # by which a size is made larger to see what becomes of the work


@dataclass(frozen=True, slots=True)
class Growth:
    """What a call costs at a size n, as shares of what it costs in the example: linear and quadratic in n, the rest fixed."""

    linear: float = 1.0
    square: float = 0.0

    def at(self, ratio: float) -> float:
        """Return how many times more a call costs where a size is so many times larger."""
        return max(0.0, 1.0 - self.linear - self.square) + self.linear * ratio + self.square * ratio**2


UNKNOWN = Growth(0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Work:
    """What the example costs, in multiply-adds, and how that grows."""

    example: float
    sizes: Mapping[str, int] = field(default_factory=dict)  # of the example
    growth: Mapping[str, Growth] = field(default_factory=dict)

    def of(self, sizes: Mapping[str, int]) -> float:
        """Return what a call at some sizes costs; those left out are the example's."""
        total = self.example
        for name, size in sizes.items():
            if self.sizes.get(name):
                total *= self.growth.get(name, UNKNOWN).at(size / self.sizes[name])
        return total


def done_by(tape: Tape) -> float:
    """Return the multiply-adds of one call."""
    return float(sum(CALL + n.size * (32 if "fft" in n.op else max(1, n.terms)) for n in tape.notes))


def measured(bound: Bound, tape: Tape, sizes: Mapping[str, int]) -> Work:
    """Return what the example costs, and how that grows, from calls in which one size each is larger."""
    example = max(done_by(tape), float(CALL))
    growth = {name: found for name in sizes if (found := _growth(bound, name, sizes[name], example)) is not None}
    return Work(example, sizes, growth)


def _growth(bound: Bound, name: str, size: int, example: float) -> Growth | None:
    """Return how the work grows with one size, or None where no larger call can be made, or is too dear for a look."""
    if not size:
        return None
    for factor in FACTORS:
        if example * factor > GLANCE:
            continue
        try:
            args = bound.vary({name: size * factor}, "random", 0)
        except ValueError:
            continue
        tape = record(eager.fresh(bound.module), args)
        if tape.error is None:
            return _fitted(done_by(tape) / example, factor)
    return None


def _fitted(ratio: float, factor: int) -> Growth:
    """Return the growth that makes a call so many times dearer where a size is `factor` times larger."""
    if ratio <= 1:
        return Growth(0.0, 0.0)
    if ratio <= factor:
        linear = (ratio - 1) / (factor - 1)
        # attention is quadratic however little of it shows at small sizes
        return Growth(linear, 0.01 * linear)
    square = min((ratio - factor) / (factor**2 - factor), 1.0)
    return Growth(1 - square, square)
