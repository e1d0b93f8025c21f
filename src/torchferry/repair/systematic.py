"""Whether a size makes a file wrong, or only some values do: the same sizes again, with several draws of plain values.

A size may be given up only where every draw is wrong beyond it and every draw is right within. One near-tie that rounding
decides the other way is about values, and stays a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

from torchferry.records import Bound, Case, Fault, Tolerance, Translated

if TYPE_CHECKING:
    from torchferry.verify.sides import Sides

SEEDS = (101, 102, 103, 104)
FEW = 0.02  # the share of an output's numbers that rounding at a tie may change; a size that is fixed changes more
Verdict = Literal["right", "wrong", "mixed"]


class Judge(Protocol):
    """Says how the file does at sizes that differ from the example's."""

    def __call__(self, sizes: Mapping[str, int]) -> Verdict: ...


@contextmanager
def judging(case: Case) -> Iterator[Judge]:
    """Give a judge of a case's file; one that finds everything mixed where there is no file to run."""
    file, bound, verified = case.value("translate"), case.value("inputs"), case.value("verify")
    if not isinstance(file, Translated) or not isinstance(bound, Bound) or verified is None or case.file is None:
        yield lambda sizes: "mixed"
        return
    from torchferry.ort import Worker
    from torchferry.verify.sides import open_sides

    with Worker(time_limit=case.job.budget.time_limit) as worker:
        sides = open_sides(bound, replace(file, path=case.file), worker)
        known: dict[frozenset[tuple[str, int]], Verdict] = {}

        def judge(sizes: Mapping[str, int]) -> Verdict:
            key = frozenset(sizes.items())
            if key not in known:
                known[key] = "mixed" if isinstance(sides, Fault) else _verdict(sides, sizes, verified.tolerance)
            return known[key]

        yield judge


def _verdict(sides: Sides, sizes: Mapping[str, int], allowed: Tolerance) -> Verdict:
    shares = [s for seed in SEEDS if (s := _share_wrong(sides, sizes, seed, allowed)) is not None]
    if not shares:
        return "mixed"
    if all(share > FEW for share in shares):
        return "wrong"
    return "right" if all(share == 0 for share in shares) else "mixed"


def _share_wrong(sides: Sides, sizes: Mapping[str, int], seed: int, allowed: Tolerance) -> float | None:
    """Return the largest share of an output's numbers that are wrong; None where there is no such call, or eager refuses it."""
    from torchferry.verify.compare import wrong

    try:
        args = sides.bound.vary(dict(sizes), "random", seed)
    except ValueError:
        return None
    want = sides.eager(args)
    if isinstance(want, Fault):
        return None
    got = sides.run(args)
    if isinstance(got, Fault) or len(got) != len(want):
        return 1.0
    shares = [
        float(wrong(w, g, allowed).mean()) if w.shape == g.shape and w.size else 0.0 for w, g in zip(want, got, strict=True)
    ]
    unlike = [1.0 for w, g in zip(want, got, strict=True) if w.shape != g.shape or w.dtype != g.dtype]
    return max([*shares, *unlike], default=0.0)
