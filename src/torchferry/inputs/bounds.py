"""How far each moving size goes: down to one or to what a kernel needs, up to the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from torchferry.inputs.moving import Ties
from torchferry.inputs.probe import Prober, Shapes, observe
from torchferry.inputs.reasons import why_fixed
from torchferry.inputs.vary import resized

MOST_ELEMENTS = 2**22  # of all inputs together, in a call that looks for an upper bound
MOST_CANDIDATES = 4
SLOWEST = 4.0  # seconds that a call one past the end of a table may be expected to take
QUICK = 0.2  # and one at a size that nothing in the model suggests


@dataclass(frozen=True, slots=True)
class Span:
    """The sizes that a root may take, and why they end."""

    low: int = 1
    high: int | None = None
    why: str = ""


def span(prober: Prober, ties: Ties, root: str, *, from_zero: bool = False) -> Span:
    """Return how far a root goes as far as trying can tell."""
    low = 0 if from_zero and prober.runs(ties.shapes(**{root: 0})) else _lowest(prober, ties, root)
    if root in ties.ends:
        return Span(low, ties.ends[root], "the model takes no more than the example has")
    high, why = _from_tables(prober, ties, root)
    if high is None:
        high, why = _from_trying(prober, ties, root)
    return Span(low, high, why)


def _lowest(prober: Prober, ties: Ties, root: str) -> int:
    """Return the smallest size that runs, by halving: a kernel that needs 7 needs them at any larger size too."""
    step = ties.steps.get(root, 1)
    good, bad = ties.roots[root], 0
    if prober.runs(ties.shapes(**{root: step})):
        return step
    bad = step
    while good - bad > step:
        middle = (good + bad) // 2 // step * step
        if middle <= bad:
            break
        if prober.runs(ties.shapes(**{root: middle})):
            good = middle
        else:
            bad = middle
    return good


def _from_tables(prober: Prober, ties: Ties, root: str) -> tuple[int | None, str]:
    """Return the bound that an embedding sets whose largest index grows with the size: positions, not ids."""
    step, size = ties.steps.get(root, 1), ties.roots[root]
    least = _least(prober, ties, root)
    try:
        before, after = (_largest_indices(prober, ties.shapes(**{**least, root: n})) for n in (size, size + 2 * step))
        growing = {p: rows - 1 - index + size for p, (rows, index) in before.items() if after.get(p, (0, 0))[1] - index == 2 * step}
        if not growing:
            return None, ""
        path = min(growing, key=lambda p: growing[p])
        further = min(growing[path] // step * step, max(4 * size, 64 // step * step))
        far = _largest_indices(prober, ties.shapes(**{**least, root: further}))
    except Exception:  # the larger size may be one too many; then trying tells
        return None, ""
    if far[path][1] - before[path][1] != further - size:  # distances that are put into buckets grow only at first
        return None, ""
    # the others are at their least here, so this is the end of the range when they are
    return growing[path] // step * step, f"{_shown(path)} has {before[path][0]} rows"


def _largest_indices(prober: Prober, shapes: Shapes) -> dict[str, tuple[int, int]]:
    made = tuple(resized(t, s, p) for t, s, p in zip(prober.tensors, shapes, prober.parts, strict=True))
    # ids repeat when an input grows, so that an index which grows is one that the model counts by itself
    return {path: (rows, int(index.max())) for path, rows, index in observe(prober.module, made).tables if index.numel()}


def _from_trying(prober: Prober, ties: Ties, root: str) -> tuple[int | None, str]:
    """Return the bound found by running one past the sizes of the model's tables, and at a few larger sizes."""
    step, good = ties.steps.get(root, 1), ties.roots[root]
    least = _least(prober, ties, root)
    tables = dict(_candidates(prober.module, good))
    tries = sorted([((rows // step + 1) * step, SLOWEST) for rows in tables] + [(n // step * step, QUICK) for n in (32, 128, 512) if n > good])
    for size, seconds in tries:
        if not _affordable(prober, ties, root, size, seconds):
            continue
        said = prober.refusal(ties.shapes(**{**least, root: size}))
        if said is None:
            good = max(good, size)
        elif said.text != "not tried":
            high = _largest(prober, ties, root, least, good, size)
            return high, f"{_shown(tables[high])} has {high} rows" if high in tables else why_fixed(said, high)
    return None, ""


def _least(prober: Prober, ties: Ties, root: str) -> dict[str, int]:
    """Return the smallest sizes for the other roots, so that a long call stays cheap."""
    least = {r: 1 for r in ties.roots if r != root and r not in ties.steps}
    return least if prober.runs(ties.shapes(**least)) else {}


def _largest(prober: Prober, ties: Ties, root: str, least: dict[str, int], good: int, bad: int) -> int:
    step = ties.steps.get(root, 1)
    if prober.runs(ties.shapes(**{**least, root: bad - step})):
        return bad - step
    while bad - good > step:
        middle = (good + bad) // 2 // step * step
        if prober.runs(ties.shapes(**{**least, root: middle})):
            good = middle
        else:
            bad = middle
    return good


def _candidates(module: torch.nn.Module, above: int) -> Iterator[tuple[int, str]]:
    """Yield the sizes of tables that could be positions, smallest first."""
    found: dict[int, str] = {}
    tensors = [*module.named_buffers(), *module.named_parameters()]
    for path, tensor in tensors:
        likely = re.search(r"pos|pe\b|\bpe|bias|mask|tril|freq|cos|sin|rel|table|cache|emb", path.rsplit(".", 2)[-1].lower() + path.lower())
        for size in tensor.shape if likely and tensor.dim() >= 2 else ():
            if size > above:
                found.setdefault(int(size), path)
    yield from sorted(found.items())[:MOST_CANDIDATES]


def _affordable(prober: Prober, ties: Ties, root: str, size: int, seconds: float) -> bool:
    elements = sum(torch.Size(s).numel() for s in ties.shapes(**{root: size}))
    growth = size / max(ties.roots[root], 1)
    return elements <= MOST_ELEMENTS and prober.seconds_per_call * growth <= seconds


def _shown(path: str) -> str:
    return path.removeprefix("model.").removesuffix(".weight") or "the model"

