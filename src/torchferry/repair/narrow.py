"""The last resort: declare less. When no repair is left, the sizes that are to blame get a smaller range, or stay fixed.

Only sizes that were found by trying are given up, never one that the user asked for; and the narrower file is captured,
checked and verified like any other. A loop written out round by round is not narrowed: the number of rounds that the example
happens to need is no range that anybody means, and the diagnosis names what would work instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchferry.guards import holds, symbols
from torchferry.records import Bound, Case, Diagnosis, Dim, Edit, History, Repair, Verified
from torchferry.repair.systematic import Judge

CODE = "INP020"
UNROLLED = ("CAP004",)  # a Python loop over a size
FAR = 4096  # a guard that holds up to here has no upper end
Cut = tuple[int, int | None, int]  # from, to, in steps of


@dataclass(frozen=True, slots=True)
class _Blamed:
    """A dim with the sizes at which the file was seen to be right and wrong while the other dims stood still."""

    dim: Dim
    example: int
    good: tuple[int, ...]
    bad: tuple[int, ...]
    guards: tuple[str, ...]


def narrowings(history: History, judge: Judge) -> Iterator[Repair]:
    """Yield ways to declare less for the best case so far, the widest first; none where sizes are not to blame."""
    case = history.best
    bound = case.value("inputs")
    if case.ok or not isinstance(bound, Bound) or case.job.onnx is not None or _unrolled(history):
        return
    free = [d for d in bound.signature.dims if not d.asked]
    verified = case.value("verify")
    if verified is not None and free:
        yield from _after_trials(case, free, verified, judge)
    elif free and not _by_values(case):
        yield from _after_fault(case, free)


def wider(history: History) -> Iterator[Repair]:
    """Yield the ways to give back one of several sizes that were fixed together: perhaps not all of them are to blame."""
    fixed = [n for r in history.kept if r.code == CODE for n, cut in r.edit.params["sizes"].items() if cut is None]
    for name in fixed if len(fixed) > 1 else ():
        yield Repair(CODE, f"`{name}` free again", Edit("inputs", "narrow", {"sizes": {}, "released": [name]}))


def _unrolled(history: History) -> bool:
    faults = [f for case in history.cases if (f := case.fault("capture")) is not None]
    too_many = any(link.type_name == "TooManyPieces" for fault in faults for link in fault.chain())
    return too_many or any(d.code in UNROLLED for d in history.best.errors)


def _by_values(case: Case) -> bool:
    """Whether an `if`, a loop or a lookup asks for the value of a tensor, which no choice of sizes answers."""
    pinned = any(f.facts.get("pinned") for f in case.findings("stopped"))
    return not pinned and any(f.facts["kind"] != "none" for f in case.findings("data-dependent"))


# --- by the trials that failed -----------------------------------------------------------------------


def _after_trials(case: Case, free: list[Dim], verified: Verified, judge: Judge) -> Iterator[Repair]:
    example = verified.trials[0].sizes if verified.trials else {}
    if any(t.sizes == example for t in verified.failed):  # wrong without another size, yet perhaps right where none can move
        if judge({}) == "wrong":
            yield _repair(case, {d.name: None for d in free})
        return
    found = [b for dim in free if (b := _blamed(case, dim, verified, judge)) is not None]
    if any(not any(t.sizes[blamed.dim.name] in blamed.bad for blamed in found) for t in verified.failed):
        return  # some trial fails at sizes that are mostly fine: it is about values, and no size is to blame for it
    for blamed in sorted(found, key=lambda b: -len(b.bad)):
        for cut in _cuts(blamed):
            yield _repair(case, {blamed.dim.name: list(cut)})
        yield _repair(case, {blamed.dim.name: None})


def _blamed(case: Case, dim: Dim, verified: Verified, judge: Judge) -> _Blamed | None:
    """Return the sizes at which a dim alone makes the file wrong, whatever the values; None if there are none."""
    example = verified.trials[0].sizes
    bad = {t.sizes[dim.name] for t in verified.failed} - {example[dim.name]}
    bad = {size for size in bad if judge({dim.name: size}) == "wrong"}
    good = {t.sizes[dim.name] for t in verified.trials if t.outcome == "agree"} - bad
    if not bad or judge({}) != "right":
        return None
    texts = [str(f.facts["guard"]) for f in case.findings("guard-narrows")]
    guards = tuple(t for t in texts if symbols(t) == {dim.name})
    blamed = _Blamed(dim, example[dim.name], tuple(good), tuple(bad), guards)
    ends = [e for way in (-1, 1) if (e := _end(blamed, way)) is not None and e in good and e != blamed.example]
    return blamed if all(judge({dim.name: end}) == "right" for end in ends) else None


def _cuts(blamed: _Blamed) -> Iterator[Cut]:
    """Yield ranges around the example in which nothing was seen to fail: all multiples of a number, then one stretch."""
    dim = blamed.dim
    for step in _steps(blamed):
        first = -(-max(dim.low, 1) // step) * step
        yield first, dim.high, step
    low, high = _end(blamed, -1), _end(blamed, 1)
    if low != high:
        yield low if low is not None else dim.low, high, dim.multiple_of


def _steps(blamed: _Blamed) -> list[int]:
    """Return the numbers that divide every size at which the file is right and none at which it is wrong, as a guard has it."""
    numbers = [n for n in range(2, blamed.example + 1) if blamed.example % n == 0 and n % blamed.dim.multiple_of == 0]
    said = [n for n in numbers if any(f"{n}" in text and "Mod" in text for text in blamed.guards)]
    return [n for n in said if all(b % n for b in blamed.bad)]


def _end(blamed: _Blamed, way: int) -> int | None:
    """Return where the range must end in a direction: before the first size that fails, as near as the guards or trials tell."""
    dim, example = blamed.dim, blamed.example
    beyond = [b for b in blamed.bad if (b - example) * way > 0]
    if not beyond:
        return dim.low if way < 0 else dim.high
    edge = min(beyond, key=lambda b: abs(b - example))
    if any(holds(text, {dim.name: edge}) is False for text in blamed.guards):
        size = example
        while size + way != edge and all(holds(text, {dim.name: size + way}) is not False for text in blamed.guards):
            size += way
        steps = -(-size // dim.multiple_of) if way < 0 else size // dim.multiple_of
        return steps * dim.multiple_of
    return max((g for g in (*blamed.good, example) if (edge - g) * way > 0), key=lambda g: g * way)


# --- by what stopped a stage --------------------------------------------------------------------------


def _after_fault(case: Case, free: list[Dim]) -> Iterator[Repair]:
    """Yield the sizes that the capture fixed, then all: whether a file of fixed sizes works tells whether sizes are to blame."""
    pinned = [d.name for d in free if any(d.name in f.facts.get("pinned", ()) for f in case.findings("stopped"))]
    if pinned and len(pinned) < len(free):
        yield _repair(case, dict.fromkeys(pinned))
    yield _repair(case, {d.name: None for d in free})


# --- in words -----------------------------------------------------------------------------------------


def _repair(case: Case, sizes: Mapping[str, list[int | None] | None]) -> Repair:
    """Return the offer, which carries the reason and its place, so that the narrowed case can tell them."""
    cause = case.errors[0] if case.errors else Diagnosis("", _fault_words(case))
    why = {"code": cause.code, "why": cause.message, "file": cause.location.file, "line": cause.location.line}
    return Repair(CODE, _title(sizes), Edit("inputs", "narrow", {"sizes": dict(sizes), **why}))


def _fault_words(case: Case) -> str:
    fault = case.steps[-1].fault
    return f"{fault.type_name}: {fault.text.splitlines()[0][:200]}" if fault and fault.text else "no rule says why"


def _title(sizes: Mapping[str, list[int | None] | None]) -> str:
    told = []
    for name, cut in sizes.items():
        if cut is None:
            told.append(f"`{name}` fixed at the example's size")
        else:
            step = f", multiples of {cut[2]}" if (cut[2] or 1) > 1 else ""
            told.append(f"`{name}` declared as {cut[0]}..{'' if cut[1] is None else cut[1]}{step}")
    return ", ".join(told)
