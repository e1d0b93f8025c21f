"""How much work a call is: multiply-adds of its operators, counted and not timed, and how they grow with each size.

What is tried hangs on this alone, so that a slow or busy machine sees no less of a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchferry import eager
from torchferry.records import Bound
from torchferry.verify.run.eager_trace import EagerTrace, Note, record

CALL = 100_000  # multiply-adds in the time that it takes to call an operator
PLAIN = 4  # multiply-adds for one number of an operator that multiplies no matrices
PRODUCTS = ("mm", "conv", "linear", "attention", "lstm", "gru", "rnn", "addmv", "aten.mv", "aten.dot", "cdist", "transformer")
GLANCE = 2e9  # multiply-adds that a look at a larger size may cost
FACTORS = (8, 2)  # by which a size is made larger to see what becomes of the work


@dataclass(frozen=True, slots=True)
class Growth:
    """What something costs at a size n, as shares of what it costs in the example by powers of n, the rest fixed."""

    linear: float = 0.5
    square: float = 0.5
    cube: float = 0.0

    def at(self, ratio: float) -> float:
        """Return how many times more it costs where a size is so many times larger."""
        fixed = max(0.0, 1.0 - self.linear - self.square - self.cube)
        return fixed + self.linear * ratio + self.square * ratio**2 + self.cube * ratio**3


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a file: how many nodes are run over and over, and how deep they are nested; a round for each of a size."""

    nodes: int = 0
    depth: int = 0

    def at(self, sizes: Mapping[str, int]) -> float:
        """Return what they cost, whatever eager does for it in one operator."""
        return float(CALL * self.nodes * max(sizes.values(), default=1) ** self.depth if self.nodes else 0.0)


NO_LOOPS = Loops()


@dataclass(frozen=True, slots=True)
class Work:
    """What the example costs, in multiply-adds: of its arithmetic, and of calling its operators; and how either grows."""

    sums: float
    calls: float = 0.0
    sizes: Mapping[str, int] = field(default_factory=dict)  # of the example
    growth: Mapping[str, tuple[Growth, Growth]] = field(default_factory=dict)  # of the arithmetic, and of the calls

    @property
    def example(self) -> float:
        """What the example costs in all."""
        return self.sums + self.calls

    def of(self, sizes: Mapping[str, int]) -> float:
        """Return what a call at some sizes costs; those left out are the example's."""
        sums, calls = self.sums, self.calls
        for name, ratio in ((n, s / self.sizes[n]) for n, s in sizes.items() if self.sizes.get(n)):
            of_sums, of_calls = self.growth.get(name, (Growth(), Growth(0.0, 0.0)))
            sums, calls = sums * of_sums.at(ratio), calls * of_calls.at(ratio)
        return sums + calls


def measured(bound: Bound, trace: EagerTrace, sizes: Mapping[str, int]) -> Work:
    """Return what the example costs, and how that grows, from calls in which one size each is larger."""
    work = Work(*_done_by(trace), sizes)
    growth = {name: found for name in sizes if (found := _growth(bound, name, work)) is not None}
    return Work(work.sums, work.calls, sizes, growth)


def _done_by(trace: EagerTrace) -> tuple[float, float]:
    """Return the multiply-adds of one call, and what calling its operators costs."""
    return max(sum(map(_sums, trace.notes)), 1.0), float(CALL * max(len(trace.notes), 1))


def _sums(note: Note) -> float:
    if "linalg" in note.op:  # cubic in the size of a matrix, of which only the eigenvalues may come out
        size = max(note.terms, math.isqrt(note.size))
        return float(max(note.size, size**2) * size)
    return float(note.size * (max(1, note.terms) if any(word in note.op for word in PRODUCTS) else PLAIN))


def _growth(bound: Bound, name: str, work: Work) -> tuple[Growth, Growth] | None:
    """Return how the work grows with one size, or None where no larger call can be made, or is too dear for a look."""
    size = work.sizes[name]
    for factor in FACTORS if size else ():
        if work.example * factor > GLANCE:
            continue
        try:
            args = bound.vary({name: size * factor}, "random", 0)
        except ValueError:
            continue
        trace = record(eager.fresh(bound.module), args)
        if trace.error is None:
            sums, calls = _done_by(trace)
            return _fitted(sums / work.sums, factor), _fitted(calls / work.calls, factor)
    return None


def _fitted(ratio: float, factor: int) -> Growth:
    """Return the growth that makes something so many times dearer where a size is `factor` times larger."""
    if ratio <= factor:
        return Growth(max(0.0, ratio - 1) / (factor - 1), 0.0)
    if ratio <= factor**2:
        square = (ratio - factor) / (factor**2 - factor)
        return Growth(1 - square, square)
    cube = min((ratio - factor**2) / (factor**3 - factor**2), 1.0)
    return Growth(0.0, 1 - cube, cube)
