"""The last resort: declare less. When no repair is left, the sizes that are to blame get a smaller range, or stay fixed.

Only sizes that were found by trying are given up, never one that the user asked for; and the narrower file is captured,
checked and verified like any other. A loop written out round by round is not narrowed to the rounds that the example happens
to need: that is no range that anybody means, and the diagnosis names what would work instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchferry.edits.inputs import Cut, Narrow
from torchferry.guards import holds, symbols
from torchferry.records import Bound, Case, Diagnosis, Dim, History, Repair, Verified
from torchferry.records.findings import CaptureStopped, DataDependent, GuardNarrows, JudgedBySize

CODE = "INP020"
UNROLLED = ("CAP004",)  # a Python loop over a size
FAR = 1024  # a guard that holds up to here has no upper end


@dataclass(frozen=True, slots=True)
class _Blamed:
    """A dim with the sizes at which the file was seen to be right and wrong while the other dims stood still."""

    dim: Dim
    example: Mapping[str, int]
    good: tuple[int, ...]
    bad: tuple[int, ...]
    guards: tuple[str, ...]

    @property
    def own(self) -> int:
        return self.example[self.dim.name]

    def fine(self, size: int) -> bool:
        """Whether no guard of the program is broken at a size."""
        return all(holds(text, {**self.example, self.dim.name: size}) is not False for text in self.guards)


def narrowings(history: History) -> Iterator[Repair]:
    """Yield ways to declare less for the best case so far, the widest first; none where sizes are not to blame."""
    case = history.best
    bound = case.value("inputs")
    if case.ok or not isinstance(bound, Bound) or case.job.onnx is not None:
        return
    free = [d for d in bound.signature.dims if not d.asked]
    verified = case.value("verify")
    if verified is not None and free:
        yield from _after_trials(case, free, verified, unrolled=_unrolled(history))
    elif free and not _unrolled(history) and not _by_values(case):
        yield from _after_fault(case, free)


def wider(history: History) -> Iterator[Repair]:
    """Yield the ways to give back one of several sizes that were fixed together: perhaps not all of them are to blame."""
    edits = [r.edit.sizes for r in history.kept if isinstance(r.edit, Narrow)]
    for name in [n for sizes in edits if len(sizes) > 1 for n, cut in sizes.items() if cut is None]:
        yield Repair(CODE, f"`{name}` free again", Narrow({}, released=(name,)))


def _unrolled(history: History) -> bool:
    faults = [f for case in history.cases if (f := case.fault("capture")) is not None]
    too_many = any(link.type_name == "TooManyPieces" for fault in faults for link in fault.chain())
    return too_many or any(d.code in UNROLLED for d in history.best.errors)


def _by_values(case: Case) -> bool:
    """Whether an `if`, a loop or a lookup asks for the value of a tensor, which no choice of sizes answers."""
    pinned = any(f.pinned for f in case.findings(CaptureStopped))
    return not pinned and any(f.kind != "none" for f in case.findings(DataDependent))


# --- by the trials that failed -----------------------------------------------------------------------


def _after_trials(case: Case, free: list[Dim], verified: Verified, *, unrolled: bool) -> Iterator[Repair]:
    seen = case.findings(JudgedBySize)
    if not seen:
        return
    example = verified.trials[0].sizes
    if any(t.sizes == example for t in verified.failed):  # wrong without another size, yet perhaps right where none can move
        if seen[0].example == "wrong" and not unrolled:
            yield _repair(case, {d.name: None for d in free})
        return
    found = [b for dim in free if (b := _blamed(case, dim, verified, seen[0].moved)) is not None]
    if any(not any(t.sizes[blamed.dim.name] in blamed.bad for blamed in found) for t in verified.failed):
        return  # some trial fails at sizes that are mostly fine: it is about values, and no size is to blame for it
    cuts = {b.dim.name: [c for c in _cuts(b) if not unrolled or c[1] == b.dim.high] for b in found}
    if len(found) > 1 and (together := _together(found, cuts)):
        yield _repair(case, together)
    for blamed in sorted(found, key=lambda b: -len(b.bad)):
        for cut in cuts[blamed.dim.name]:
            yield _repair(case, {blamed.dim.name: cut})
        if not unrolled:
            yield _repair(case, {blamed.dim.name: None})


def _blamed(case: Case, dim: Dim, verified: Verified, verdicts: Mapping[tuple[str, int], str]) -> _Blamed | None:
    """Return the sizes at which a dim alone makes the file wrong, whatever the values; None if there are none."""
    example = verified.trials[0].sizes
    bad = {size for (name, size), verdict in verdicts.items() if name == dim.name and verdict == "wrong"}
    tried = {t.sizes[dim.name] for t in verified.failed}
    by_luck = [s for (name, s), verdict in verdicts.items() if name == dim.name and verdict == "mixed" and s not in tried]
    if not bad or by_luck:
        return None
    good = {t.sizes[dim.name] for t in verified.trials if t.outcome == "agree"} - bad
    guards = tuple(t for t in _binding(case, verified) if dim.name in symbols(t) and symbols(t) <= example.keys())
    return _Blamed(dim, example, tuple(good), tuple(bad), guards)


def _binding(case: Case, verified: Verified) -> list[str]:
    """Return the guards that may matter: one that is broken at sizes where the file is right was only torch's own reckoning."""
    texts = [f.guard for f in case.findings(GuardNarrows)]
    right = [t.sizes for t in verified.trials if t.outcome == "agree"]
    return [text for text in texts if not any(holds(text, sizes) is False for sizes in right)]


def _cuts(blamed: _Blamed) -> list[Cut]:
    """Return ranges around the example in which nothing was seen to fail: the widest that the guards say, then by the trials."""
    explained = not any(blamed.fine(size) for size in blamed.bad)
    said = [cut for step in _steps(blamed) if (cut := _run(blamed, step)) is not None] if explained else []
    said = sorted(said, key=lambda c: (c[1] != blamed.dim.high, c[2]))[:1]  # as far as the model goes, in the smallest steps
    low, high = _last_good(blamed, -1), _last_good(blamed, 1)
    shown: list[Cut] = [(low or blamed.dim.low, high, blamed.dim.multiple_of)] if low != high else []
    return [*said, *(cut for cut in shown if cut not in said)]


def _steps(blamed: _Blamed) -> list[int]:
    step, own = blamed.dim.multiple_of, blamed.own
    return [n for n in range(step, own + 1, step) if own % n == 0]


def _run(blamed: _Blamed, step: int) -> Cut | None:
    """Return the multiples of a step around the example at which every guard holds; None if there is only the example."""
    dim, low, high = blamed.dim, blamed.own, blamed.own
    end = FAR if dim.high is None else min(dim.high, FAR)
    while low - step >= max(dim.low, 1) and blamed.fine(low - step):
        low -= step
    while high + step <= end and blamed.fine(high + step):
        high += step
    if low == high:
        return None
    return low, dim.high if high + step > end else high, step


def _within(size: int | None, cut: Cut) -> bool:
    return size is not None and size >= cut[0] and (cut[1] is None or size <= cut[1]) and size % cut[2] == 0


def _last_good(blamed: _Blamed, way: int) -> int | None:
    """Return where the range must end in a direction as the trials have it: at the last good size before the first bad one."""
    beyond = [b for b in blamed.bad if (b - blamed.own) * way > 0]
    if not beyond:
        return blamed.dim.low if way < 0 else blamed.dim.high
    edge = min(beyond, key=lambda b: abs(b - blamed.own))
    return max((g for g in (*blamed.good, blamed.own) if (edge - g) * way > 0), key=lambda g: g * way)


def _together(found: Sequence[_Blamed], cuts: Mapping[str, Sequence[Cut]]) -> dict[str, Cut]:
    """Return the widest cut of every dim, if the guards hold wherever all of them are moved; empty if they do not."""
    if not all(cuts.values()):
        return {}
    first = {name: choice[0] for name, choice in cuts.items()}
    points = [
        [n for n in range(low, low + 6 * step, step) if _within(n, (low, high, step))] for low, high, step in first.values()
    ]
    for point in itertools.product(*points):
        sizes = {**found[0].example, **dict(zip(first, point, strict=True))}
        if any(holds(text, sizes) is False for blamed in found for text in blamed.guards):
            return {}
    return first


# --- by what stopped a stage --------------------------------------------------------------------------


def _after_fault(case: Case, free: list[Dim]) -> Iterator[Repair]:
    """Yield the sizes that the capture fixed, then all: whether a file of fixed sizes works tells whether sizes are to blame."""
    pinned = [d.name for d in free if any(d.name in f.pinned for f in case.findings(CaptureStopped))]
    if pinned and len(pinned) < len(free):
        yield _repair(case, dict.fromkeys(pinned))
    yield _repair(case, {d.name: None for d in free})


# --- in words -----------------------------------------------------------------------------------------


def _repair(case: Case, sizes: Mapping[str, Cut | None]) -> Repair:
    """Return the offer, which carries the reason and its place, so that the narrowed case can tell them."""
    cause = case.errors[0] if case.errors else Diagnosis("", _fault_words(case))
    edit = Narrow(sizes, cause.code, cause.message, cause.location.file, cause.location.line)
    return Repair(CODE, _title(sizes), edit)


def _fault_words(case: Case) -> str:
    fault = case.steps[-1].fault
    return f"{fault.type_name}: {fault.line[:200]}" if fault and fault.text else "no rule says why"


def _title(sizes: Mapping[str, Cut | None]) -> str:
    told = []
    for name, cut in sizes.items():
        if cut is None:
            told.append(f"`{name}` fixed at the example's size")
        else:
            step = f", multiples of {cut[2]}" if cut[2] > 1 else ""
            told.append(f"`{name}` declared as {cut[0]}..{'' if cut[1] is None else cut[1]}{step}")
    return ", ".join(told)
