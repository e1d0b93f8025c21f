"""Sizes and guards that no trial has tried yet: calls for them with the example's own values, which eager hardly refuses.

Made-up values may be refused for what they are, and then a size, or the other side of a guard, was never seen. Where eager
refuses the example's own values too, the size is to blame: the model does not take it, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry import guards as conditions
from torchferry.records import Dim, Guard
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.trials.coupled import together
from torchferry.verify.trials.plans import TrialPlan, candidates

SIZES = 3  # other sizes of a dim that are tried
FARTHEST = 4096  # how far a size that breaks a guard is looked for


def untried(bench: Bench, judged: Sequence[Judged], guards: Sequence[Guard], seed: int) -> Iterator[TrialPlan]:
    """Yield calls at sizes that no trial has shown anything of."""
    told = [j.trial.sizes for j in judged if j.trial.outcome != "eager-refused"]
    for dim in bench.sides.bound.signature.dims:
        own = bench.sizes.get(dim.name)
        if own is not None and all(sizes.get(dim.name) == own for sizes in told):
            for size in candidates(dim, own, ())[:SIZES]:
                yield _plan(bench, {dim.name: size}, seed)
    for guard in guards:
        if not any(conditions.holds(guard.text, dict(sizes)) is False for sizes in told):
            yield from (_plan(bench, {name: size}, seed, guard.text) for name, size in _breaking(bench, guard))


def _plan(bench: Bench, sizes: dict[str, int], seed: int, why: str = "") -> TrialPlan:
    return TrialPlan(together(sizes, bench.links), "example", seed, why=why)


def _breaking(bench: Bench, guard: Guard) -> Iterator[tuple[str, int]]:
    """Yield, for each dim of a guard, the nearest size within what is declared that breaks it."""
    for dim in bench.sides.bound.signature.dims:
        if dim.name in conditions.symbols(guard.text) and dim.name in bench.sizes:
            broken = (s for s in _near(dim, bench.sizes[dim.name]) if _breaks(bench, guard, dim.name, s))
            yield from ((dim.name, size) for size in list(broken)[:1])


def _breaks(bench: Bench, guard: Guard, name: str, size: int) -> bool:
    return conditions.holds(guard.text, {**bench.sizes, name: size}) is False


def _near(dim: Dim, own: int) -> list[int]:
    """Return the sizes that are declared, those near the example's first."""
    last = min(FARTHEST, dim.high if dim.high is not None else FARTHEST)
    return sorted(range(max(dim.low, 0), last + 1, max(1, dim.multiple_of)), key=lambda s: abs(s - own))
