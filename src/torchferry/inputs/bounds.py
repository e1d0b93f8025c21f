"""How far each moving size goes: down to one or to what a kernel needs, up to the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from torchferry.inputs.moving import Ties
from torchferry.inputs.probe import Prober, Shapes, embedding_uses
from torchferry.inputs.vary import resized

MOST_ELEMENTS = 2**22  # of all inputs together, in a call that looks for an upper bound
MOST_CANDIDATES = 4
SLOWEST = 4.0  # seconds that a call at an upper bound may be expected to take


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
        high, why = _from_parameters(prober, ties, root)
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
    size, more = ties.roots[root], ties.roots[root] + 2 * ties.steps.get(root, 1)
    try:
        before, after = (_largest_indices(prober, ties.shapes(**{root: n})) for n in (size, more))
    except Exception:  # the larger size may be the one too many; then the parameters tell
        return None, ""
    bounds = []
    for path, (rows, index) in before.items():
        grown = after.get(path, (rows, index))[1] - index
        if grown == more - size:
            bounds.append((rows - 1 - index + size, path, rows))
    if not bounds:
        return None, ""
    high, path, rows = min(bounds)
    return high, f"{_shown(path)} has {rows} rows"


def _largest_indices(prober: Prober, shapes: Shapes) -> dict[str, tuple[int, int]]:
    made = tuple(resized(t, s, p) for t, s, p in zip(prober.tensors, shapes, prober.parts, strict=True))
    # ids repeat when an input grows, so that an index which grows is one that the model counts by itself
    return {path: (rows, int(index.max())) for path, rows, index in embedding_uses(prober.module, made) if index.numel()}


def _from_parameters(prober: Prober, ties: Ties, root: str) -> tuple[int | None, str]:
    """Return the bound that the size of a parameter or buffer sets, found by running one past it."""
    step = ties.steps.get(root, 1)
    for rows, path in _candidates(prober.module, ties.roots[root]):
        beyond = (rows // step + 1) * step
        if not _affordable(prober, ties, root, beyond):
            break
        least = {r: 2 for r in ties.roots if r != root and r not in ties.steps}
        if not prober.runs(ties.shapes(**{**least, root: ties.roots[root]})):
            least = {}
        said = prober.refusal(ties.shapes(**{**least, root: beyond}))
        if said is not None and said.text != "not tried" and prober.runs(ties.shapes(**{**least, root: rows // step * step})):
            return rows // step * step, f"{_shown(path)} has {rows} rows"
        if said is not None:
            return None, ""
    return None, ""


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


def _affordable(prober: Prober, ties: Ties, root: str, size: int) -> bool:
    elements = sum(torch.Size(s).numel() for s in ties.shapes(**{root: size}))
    growth = size / max(ties.roots[root], 1)
    return elements <= MOST_ELEMENTS and prober.seconds_per_call * growth <= SLOWEST


def _shown(path: str) -> str:
    return path.removeprefix("model.").removesuffix(".weight") or "the model"

