"""Which sizes and values to try, those with the most power to expose a fault first; the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch

from torchferry import guards as conditions
from torchferry.records import Bound, Dim, Guard
from torchferry.records.kinds_of_values import STRANGE
from torchferry.verify.trials.coupled import Links, together
from torchferry.verify.trials.landmarks import landmarks
from torchferry.verify.trials.padding_garbage import garbage_under_padding

# Ways to fill the inputs, by how often each exposes something; `Bound.vary` refuses those that do not apply to a model.
PLAUSIBLE = (
    "right-padded",
    "random",
    "other-padding",
    "left-padded",
    "negative",
    "short-lengths",
    "scaled",
    "constant-rows",
    "zeros",
    "duplicates",
    "padded-ids",
    "random-mask",
    "one-valid",
    "all-ones",
    "large",
    "large-negative",
    "ties",
    "zero-rows",
    "max-id",
    "tiny",
    "huge",
    "negative-zeros",
    "constant",
    "grid",
    "positive",
    "all-false",
    "all-true",
    "equal-lengths",
    "shuffled",
    "offset",
    "large-positive",
    "later-positions",
    "small",
    "ones",
    "big",
    "empty-row",
    "denormal",
    "big-ids",
    "negative-ids",
)
T = TypeVar("T")
ANEW = ("random", "nan")  # kinds of which another seed makes another trial
ALONE = ("-inf", "zeros", "negative", "constant-rows", "inf", "large", "ties", "nan")  # also for one input at a time


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One trial to come: sizes that differ from the example's, and how to fill the inputs; or a given call."""

    sizes: Mapping[str, int]
    values: str
    seed: int = 0
    only: str = ""  # the one input that gets these values; empty: all that can
    given: tuple[torch.Tensor, ...] | None = None
    level: str = "all"  # how far onnxruntime optimises the file
    name: str = ""
    why: str = ""
    directed: bool = False  # at something in the model or in the file; see directed.py

    @property
    def title(self) -> str:
        """The trial's name: what is unlike the example."""
        if self.name:
            return self.name
        parts = [f"{k}={v}" for k, v in self.sizes.items()]
        return ", ".join([*parts, f"values={self.values}" + (f" in {self.only}" if self.only else "")])

    def args(self, bound: Bound) -> tuple[torch.Tensor, ...]:
        """Return the tensors of this trial; ValueError where no such call can be made."""
        if self.given is not None:
            return self.given
        if self.values == "other-padding":
            return garbage_under_padding(bound, dict(self.sizes), self.seed)
        made = bound.vary(dict(self.sizes), self.values, self.seed)
        if not self.only:
            return made
        plain = bound.vary(dict(self.sizes), "random", self.seed)
        names = [s.name for s in bound.signature.inputs]
        return tuple(m if n == self.only else p for n, m, p in zip(names, made, plain, strict=True))


@dataclass(slots=True)
class _Seen:
    keys: set[tuple[tuple[tuple[str, int], ...], str, str, int]] = field(default_factory=set)

    def new(self, plan: TrialPlan) -> bool:
        key = (tuple(sorted(plan.sizes.items())), plan.values, plan.only, plan.seed if plan.values in ANEW else 0)
        fresh = plan.given is not None or key not in self.keys
        self.keys.add(key)
        return fresh


def plans(
    bound: Bound, guards: Sequence[Guard], seed: int, links: Links | None = None, bounds: Sequence[int] = ()
) -> Iterator[TrialPlan]:
    """Yield all trials worth running, most telling first; the caller stops when the budget is spent.

    `bounds` are numbers in a file from elsewhere that may say how far it goes.
    """
    yield from each_once(replace(made, sizes=together(made.sizes, links or {})) for made in _ordered(bound, guards, seed, bounds))


def each_once(made: Iterable[TrialPlan]) -> Iterator[TrialPlan]:
    """Yield plans, but none that is the same as one before."""
    seen = _Seen()
    yield from (plan for plan in made if seen.new(plan))


def _ordered(bound: Bound, guards: Sequence[Guard], seed: int, bounds: Sequence[int]) -> Iterator[TrialPlan]:
    base = example_sizes(bound)
    yield TrialPlan({}, "example", seed, given=bound.args, name="the example")
    yield TrialPlan({}, "example", seed, given=bound.args, level="none", name="the example, without onnxruntime's optimisations")
    for n, given in enumerate(bound.examples):
        yield TrialPlan({}, "given", seed, given=given, name=f"given example {n + 1}")
    moving = [d for d in bound.signature.dims if d.name in base]
    points = {d.name: candidates(d, base[d.name], landmarks(bound.module, guards), bounds) for d in moving}
    yield from _guarded(base, points, guards, seed)
    added = [TrialPlan({}, "-inf", seed + 1, only=n) for n in added_masks(bound)]
    unusual = [TrialPlan({}, v, seed + 1) for v in PLAUSIBLE]
    yield from _interleaved(_size_plans(base, points, seed), [*unusual[:4], *added, *unusual[4:]])
    bigger = {d.name: p for d in moving if (p := next((c for c in points[d.name] if c > base[d.name]), None))}
    for values in PLAUSIBLE:  # a fault may need both another size and another kind of value
        yield TrialPlan(bigger, values, seed + 2)
    yield from _one_by_one(bound, seed)
    for values in STRANGE:
        yield TrialPlan({}, values, seed + 1)
    for again in range(3, 9 if moving else 40):  # where no size moves, there are no large calls, and few of other kinds
        yield TrialPlan(bigger if again % 2 else {}, "random", seed + again)


def _one_by_one(bound: Bound, seed: int) -> Iterator[TrialPlan]:
    """Yield trials in which one input alone is unusual: what two unusual ones hide, one shows."""
    telling = ("float", "int", "ids", "mask", "flags", "bool")
    names = [s.name for s in bound.signature.inputs if bound.roles.get(s.name, "float") in telling]
    for values in ALONE if len(names) > 1 else ():
        yield from (TrialPlan({}, values, seed + 1, only=n) for n in names)


def _guarded(base: Mapping[str, int], points: Mapping[str, list[int]], guards: Sequence[Guard], seed: int) -> Iterator[TrialPlan]:
    """Yield, for each guard, sizes that break it: a capture that relied on it is put to the test at once."""
    for guard in guards:
        broken = 0
        for name, choices in points.items():
            for size in choices:
                if broken < 2 and conditions.holds(guard.text, {**base, name: size}) is False:
                    broken += 1
                    yield TrialPlan({name: size}, "random", seed + 1, why=guard.text)


def _size_plans(base: Mapping[str, int], points: Mapping[str, list[int]], seed: int) -> list[TrialPlan]:
    together = {n: next((c for c in p if c > base[n]), base[n]) + 0 for n, p in points.items()}
    plans = [TrialPlan(_distinct(together, points), "random", seed + 1)] if points else []
    longest = max((len(p) for p in points.values()), default=0)
    for n in range(longest):
        plans += [TrialPlan({name: p[n]}, "random", seed + 1) for name, p in points.items() if n < len(p)]
        if len(points) > 1:
            plans.append(TrialPlan({name: p[min(n, len(p) - 1)] for name, p in points.items() if p}, "random", seed + 1))
    return plans


def _distinct(sizes: Mapping[str, int], points: Mapping[str, list[int]]) -> dict[str, int]:
    """Return sizes no two of which are equal where that can be had: an axis taken for another then shows."""
    chosen: dict[str, int] = {}
    for name, size in sizes.items():
        free = [c for c in points[name] if c > 1 and c not in chosen.values()]
        chosen[name] = size if size not in chosen.values() or not free else free[0]
    return chosen


def _interleaved(sizes: Sequence[TrialPlan], values: Sequence[TrialPlan]) -> Iterator[TrialPlan]:
    """Yield size and value trials in turns, so that a short budget sees the best of both."""
    for n in range(max(len(sizes), len(values))):
        yield from sizes[n : n + 1]
        yield from values[n : n + 1]


def in_turns(sources: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield from each source in turn until all are at their end."""
    left = list(sources)
    while left:
        for source in list(left):
            if (one := next(source, None)) is None:
                left.remove(source)
            else:
                yield one


def candidates(dim: Dim, example: int, marks: Sequence[int], bounds: Sequence[int] = ()) -> list[int]:
    """Return the sizes worth trying for one dim, in order, within what the file promises."""
    empty = [0] if dim.low == 0 else []  # a cache starts empty
    usual = [*empty, 1, example + 1, 2, 2 * example, example - 1, 3 * example + 1]
    ends = [dim.low] + ([dim.high] if dim.high is not None else [])
    near = [m + d for m in marks for d in (0, 1, -1) if m + d <= max(64, 8 * example)]
    near += [b + d for b in bounds for d in (1, 0)]
    step = max(1, dim.multiple_of)
    found: list[int] = []
    for size in [*usual[:-2], *near, *usual[-2:], *ends]:
        rounded = -(-size // step) * step
        inside = max(dim.low, 0) <= rounded <= (rounded if dim.high is None else dim.high)
        if inside and rounded != example and rounded not in found:
            found.append(rounded)
    return found


def example_sizes(bound: Bound) -> dict[str, int]:
    """Return the size that each moving dim has in the example."""
    sizes: dict[str, int] = {}
    for spec, arg in zip(bound.signature.inputs, bound.args, strict=True):
        for axis, size in enumerate(spec.shape):
            if isinstance(size, str) and bound.signature.dim(size) is not None:
                sizes.setdefault(size, int(arg.shape[axis]))
    return sizes


def added_masks(bound: Bound) -> list[str]:
    """Return the float inputs that are added to attention scores, in which minus infinity means "do not look"."""
    found = []
    for spec, example in zip(bound.signature.inputs, bound.args, strict=True):
        named = any(w in spec.name.lower() for w in ("mask", "bias"))
        if example.is_floating_point() and (bool(example.isinf().any()) or (named and example.dim() >= 2)):
            found.append(spec.name)
    return found
