"""Calls at a threshold: values at which what eager compares is equal, solved for by secant steps, and some beside them.

`price * 100 >= 5000` and `price * 100 > 5000` are alike but where the product is 5000 to the last bit, and no draw lands there.
What is compared is a function of the inputs, so two calls tell its slope in each of them, of whole numbers too, and the slope
how far to go. Nothing is believed of it: a call counts only where eager itself was seen to compare equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch

from torchferry import eager
from torchferry.verify.run.decisions import Decision, Key, watch
from torchferry.verify.run.memory import little_memory
from torchferry.verify.trials.budget import WORK
from torchferry.verify.trials.plans import TrialPlan
from torchferry.verify.trials.tries import Tries
from torchferry.verify.trials.untaken_sides import at_a_side

STEPS = 12  # of one search
CLOSE = 1e-6  # of the way to a threshold: a share may step over 0.99 by its last bit
WIDER = 8.0  # times the first step, over and over while it shows nothing
TARGETS = 16  # decisions that are searched for
CALLS = 400  # of eager, for all searches together
SHARE = 0.1  # of the work for directed trials that they may cost
COLUMNS = 12  # of an input, moved one by one
ULPS = (1, -1, 2, -2, 3, -3)  # last bits by which a search may have missed
BESIDE = (0.0, 2.0**-23, -(2.0**-23), 1e-5, -1e-5, 1e-3, -1e-3, 0.1, -0.1)  # shares of a fraction at a threshold
BESIDE_WHOLE = (0.0, 1.0, -1.0, 2.0, -2.0)
Call = tuple[torch.Tensor, ...]
Gap = Callable[[torch.Tensor], torch.Tensor | None]  # numbers -> how far from equal, for each of them; None: refused
SIDES = {"at": 0.0, "above": 1.0, "below": -1.0}  # what the margin must be


@dataclass(frozen=True, slots=True)
class MovedPart:
    """The part of a call that is moved: an input, or one place of its last axis."""

    place: int
    column: int | None = None

    def read(self, args: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the numbers of a call that are there, in float64."""
        whole = args[self.place]
        return (whole if self.column is None else whole[..., self.column]).detach().to(torch.float64)

    def write(self, args: tuple[torch.Tensor, ...], values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return a call with other numbers there."""
        made = args[self.place].detach().clone()
        if self.column is None:
            made = values.to(made.dtype)
        else:
            made[..., self.column] = values.to(made.dtype)
        return (*args[: self.place], made, *args[self.place + 1 :])


@dataclass(frozen=True, slots=True)
class Solved:
    """A call at a threshold, or as close as its numbers go: the part that was moved, and the numbers there that lie at it."""

    args: tuple[torch.Tensor, ...]
    slot: MovedPart
    hits: torch.Tensor
    exact: bool = True


def slots(tries: Tries, places: Iterable[int]) -> list[MovedPart]:
    """Return the parts of a call that can be moved: inputs, and where the last axis is short and does not move, its columns."""
    found = []
    for place in places:
        spec = tries.bound.signature.inputs[place]
        width = spec.shape[-1] if len(spec.shape) > 1 else 0
        columns = range(width if isinstance(width, int) and 1 < width <= COLUMNS else 0)
        found += [MovedPart(place), *(MovedPart(place, c) for c in columns)]
    return found


def thresholds(tries: Tries, numeric: list[int], seed: int) -> Iterator[tuple[TrialPlan, Solved]]:
    """Yield calls at the thresholds that no draw has met, with what was solved for and some close beside; then at two at once."""
    search = _Search(tries, numeric)
    targets = [d for d in list(tries.decisions.values()) if d.kind in ("compare", "round") and search.missing(d)]
    for decision in targets[:TARGETS]:
        for side in search.missing(decision):
            solved = search.solve(decision, side, seed)
            if solved is not None:
                for way, args in _beside(solved, seed) if side == "at" else ():
                    yield at_a_side(decision.key, way, args, seed), solved
                yield at_a_side(decision.key, side if solved.exact else "close", solved.args, seed), solved
    yield from _two_at_once(search, tries, seed)


def _two_at_once(search: _Search, tries: Tries, seed: int) -> Iterator[tuple[TrialPlan, Solved]]:
    """Yield calls that meet one threshold, moved on to a second: `(t // 86400 == 86) & (t % 86400 // 3600 == 2)`.

    Both hang on one input, so no draw of all inputs at once meets the two; made only while a condition has never come true.
    """
    untrue = {d.key for d in tries.decisions.values() if d.kind == "condition" and "true" not in d.sides}
    compared = [d for d in list(tries.decisions.values()) if d.kind == "compare" and d.numbers][:TARGETS]
    for one in compared:
        first = search.solve(one, "at", seed) if untrue else None
        for other in compared if first is not None else ():
            if first is None or other is one or first.slot.place not in other.inputs:
                continue
            second = search.solve(other, "at", seed, first.args)
            seen = tries.called(second.args) if second is not None else None
            came_true = {k for k in untrue if seen is not None and k in seen.decisions and "true" in seen.decisions[k].sides}
            if second is not None and came_true:
                untrue -= came_true
                words = f"{one.key.words} and {other.key.words}"
                yield replace(at_a_side(other.key, "at", second.args, seed), name=f"values=reached, {words}: at"), second


def _beside(solved: Solved, seed: int) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """Yield a call whose numbers lie at a threshold or close to it, in turns; where there is but one, on either side."""
    values, whole = solved.slot.read(solved.args), not solved.args[solved.slot.place].is_floating_point()
    steps = torch.tensor(BESIDE_WHOLE if whole else BESIDE, dtype=torch.float64)
    size = torch.ones_like(values) if whole else values.abs().clamp(min=1e-6)
    if values.numel() >= 4:
        order = torch.randint(0, len(steps), values.shape, generator=torch.Generator().manual_seed(seed))
        yield "beside", solved.slot.write(solved.args, values + steps[order] * size)
    else:
        for step in steps[1:3] if whole else steps[[1, 2, 5, 6]] if solved.exact else steps[5:]:
            yield f"beside, {float(step):+.0e}", solved.slot.write(solved.args, values + step * size)


class _Search:
    """Secant searches, with what eager may be called for all of them together."""

    def __init__(self, tries: Tries, numeric: list[int]) -> None:
        self.tries, self.numeric = tries, numeric
        self.left = min(CALLS, int(SHARE * WORK / tries.budget.work.example))

    def missing(self, decision: Decision) -> list[str]:
        """Return the sides that no call has taken; above and below of fractions are reached by their gradients."""
        return [s for s in (SIDES if decision.whole else ("at",)) if s not in decision.sides]

    def solve(self, decision: Decision, side: str, seed: int, start: Call | None = None) -> Solved | None:
        """Return a call at which a decision takes a side, on from `start` or from a draw; None where no slope leads there."""
        start = start or TrialPlan({}, "random", seed + 1).args(self.tries.bound)
        close = None
        for slot in slots(self.tries, [p for p in self.numeric if p in decision.inputs]):
            found = self._along(decision.key, start, slot, SIDES[side])
            if found is not None and found.exact:
                return found
            close = close or found
        return close

    def _margin(self, key: Key, args: tuple[torch.Tensor, ...]) -> torch.Tensor | None:
        """Return how far apart what is compared lies, or None where eager refuses the call or does not come by."""
        if self.left < 1:
            return None
        self.left -= 1
        self.tries.budget.pay({}, directed=True, trial=False)
        try:
            with little_memory(), eager.kept(self.tries.state), eager.on_made_input(self.tries.module):
                seen = watch(self.tries.module, args, margins=True)
        except Exception:  # the user's forward may refuse an input in any way it likes
            return None
        self.tries.remember(seen.decisions)
        decision = seen.decisions.get(key)
        return None if decision is None or decision.margin is None else decision.margin.detach().to(torch.float64).reshape(-1)

    def _along(self, key: Key, start: tuple[torch.Tensor, ...], slot: MovedPart, goal: float) -> Solved | None:
        """Return a call at which a margin is `goal`, got by moving one part of it along secants."""
        values, whole = slot.read(start), not start[slot.place].is_floating_point()
        margin = self._margin(key, start)
        if margin is None or not values.numel():
            return None
        units = _units(values, margin)
        nearest = margin.reshape(units, -1).sub(goal).abs().nan_to_num(torch.inf).argmin(1, keepdim=True)

        def gap(numbers: torch.Tensor) -> torch.Tensor | None:
            found = self._margin(key, slot.write(start, numbers))
            return (
                None if found is None or found.numel() != margin.numel() else found.reshape(units, -1).gather(1, nearest) - goal
            )

        at, far = values.reshape(units, -1), margin.reshape(units, -1).gather(1, nearest) - goal
        enough = 0.0 if whole else CLOSE * far.abs()
        step = torch.full_like(far, 1.0 if whole else 0.01 * (float(values.std(correction=0)) or 1.0))
        slope = torch.zeros_like(far)
        for _ in range(STEPS):
            moved = _rounded(at + step, start[slot.place].dtype)
            after = gap(moved.reshape(values.shape))
            if after is None:
                return None
            shift = (moved - at).mean(1, keepdim=True)
            shows = (shift != 0) & (after != far)
            slope = torch.where(shows, (after - far) / shift, slope)
            at, far = moved, after
            # a floor, or a rounding, shows larger steps alone, and the slope at its edge is far too steep
            straight = torch.where(shows, -far / slope, step * WIDER)
            step = torch.where(far != 0, straight, 0.0).nan_to_num(0.0, 0.0, 0.0).clamp(-1e9, 1e9)
            step = torch.where((step != 0) & (step.abs() < 0.5), step.sign(), step).round() if whole else step
            if not bool(step.any()):
                break
        at, far = (at, far) if whole else self._last_bits(at, far, gap, values, start[slot.place].dtype)
        if not bool(slope.any()):
            return None
        met, near = far == 0, far.abs() <= enough
        args = slot.write(start, torch.where(near, at, values.reshape(units, -1)).reshape(values.shape))  # others stay put
        exact = bool(met.any())
        return Solved(args, slot, at[(met if exact else near).reshape(-1)].reshape(-1), exact) if bool(near.any()) else None

    def _last_bits(
        self, at: torch.Tensor, far: torch.Tensor, gap: Gap, like: torch.Tensor, dtype: torch.dtype
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the numbers that a search arrived at, moved by a few last bits where that makes equal what is compared."""
        for ulps in ULPS if dtype in (torch.float32, torch.float64) and not bool((far == 0).all()) else ():
            moved = at.to(dtype)
            for _ in range(abs(ulps)):
                moved = torch.nextafter(moved, torch.full_like(moved, torch.inf * ulps))
            after = gap(moved.to(torch.float64).reshape(like.shape))
            if after is None:
                break
            better = (after == 0) & (far != 0)
            at, far = torch.where(better, moved.to(torch.float64), at), torch.where(better, after, far)
        return at, far


def _units(values: torch.Tensor, margin: torch.Tensor) -> int:
    """Return into how many parts numbers fall that are moved each by itself: single ones, rows, or all at once."""
    rows = values.shape[0] if values.dim() else 1
    return next(n for n in (values.numel(), rows, 1) if n and margin.numel() % n == 0)


def _rounded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return values.to(dtype).to(torch.float64)
