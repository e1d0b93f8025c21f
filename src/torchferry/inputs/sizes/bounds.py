"""How far each moving size goes: down to one or to what a kernel needs, up to the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch

from torchferry.inputs.sizes.probing import NOT_TRIED, Prober, Shapes, observe
from torchferry.inputs.sizes.reasons import why_fixed
from torchferry.inputs.sizes.search_state import Ties
from torchferry.inputs.values.roles import InputRole
from torchferry.inputs.values.vary import resized

MOST_ELEMENTS = 2**22  # of all inputs together, in a call that looks for an upper bound
MOST_PAIRS = 2**24  # of numbers fed and places along the size: what attention compares
MOST_CANDIDATES = 4
# weights times numbers fed, which bound the work of a call by its sizes alone: a busy machine must not change what is found
MOST_WORK = 2 * 10**10  # in a call one past the end of a table: some seconds
LITTLE_WORK = 10**9  # and at a size that nothing in the model suggests
SHOWN = "as the examples show; no other call with such sizes can be made up"


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest size of a root, and why; with the roots that share it, where it is their sum that ends."""

    high: int
    why: str
    sharing: tuple[str, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """The sizes that a root may take, and why they end."""

    low: int = 1
    high: int | None = None
    why: str = ""
    sharing: tuple[str, ...] = ()  # the roots, itself included, that together go no further than `total`
    total: int = 0


def spans(prober: Prober, ties: Ties, empty: Collection[str] = ()) -> dict[str, Span]:
    """Return how far each root goes, as far as trying can tell; `empty` are those that may be asked to be 0."""
    lows = _lows(prober, ties, empty)
    tables = _from_tables(prober, ties, lows)
    found = {}
    for root, low in lows.items():
        if root in ties.shown:
            found[root] = Span(*ties.shown[root], SHOWN)
        elif root in ties.ends:
            found[root] = Span(low, ties.ends[root], "the model takes no more than the example has")
        else:
            end = tables.get(root) or _from_trying(prober, ties, root)
            found[root] = Span(low) if end is None else Span(low, end.high, end.why, end.sharing, end.total)
    return found


# --- downwards -----------------------------------------------------------------------------------


def _lows(prober: Prober, ties: Ties, empty: Collection[str]) -> dict[str, int]:
    least = {root: ties.roots[root] if root in ties.shown else ties.steps.get(root, 1) for root in ties.roots}
    lows = least if prober.runs(ties.shapes(**least)) else {root: _lowest(prober, ties, root) for root in ties.roots}
    return {root: 0 if root in empty and prober.runs(ties.shapes(**{root: 0})) else low for root, low in lows.items()}


def _lowest(prober: Prober, ties: Ties, root: str) -> int:
    """Return the smallest size that runs, by halving: a kernel that needs 7 needs them at any larger size too."""
    if root in ties.shown:
        return ties.roots[root]
    step = ties.steps.get(root, 1)
    said = prober.refusal(ties.shapes(**{root: step}))
    if said is None or said.text == NOT_TRIED:  # untried is no bound; verification tries the ends
        return step
    good, bad = ties.roots[root], step
    while good - bad > step:
        middle = (good + bad) // 2 // step * step
        if middle <= bad:
            break
        if prober.runs(ties.shapes(**{root: middle})):
            good = middle
        else:
            bad = middle
    return good


# --- upwards, by looking at the indices into embeddings -------------------------------------------


def _from_tables(prober: Prober, ties: Ties, lows: dict[str, int]) -> dict[str, Limit]:
    """Return the bounds that embeddings set whose largest index grows with a size: positions, not ids."""
    before = _largest_indices(prober, ties.shapes())
    if not before:
        return {}
    growing = {
        root: path for root in ties.roots if root not in ties.ends and (path := _grows(prober, ties, root, before)) is not None
    }
    found = {}
    for root, path in growing.items():
        rows, index = before[path]
        sharing = tuple(r for r, p in growing.items() if p == path)
        total = rows - 1 - index + sum(ties.roots[r] for r in sharing)
        step = ties.steps.get(root, 1)
        high = (total - sum(lows[r] for r in sharing if r != root)) // step * step  # the others at their least
        found[root] = Limit(high, f"{_shown(path)} has {rows} rows", sharing if len(sharing) > 1 else (), total)
    return found


def _grows(prober: Prober, ties: Ties, root: str, before: dict[str, tuple[int, int]]) -> str | None:
    """Return the table whose largest index follows a size one to one: the tightest, or None."""
    step, size = ties.steps.get(root, 1), ties.roots[root]
    after = _largest_indices(prober, ties.shapes(**{root: size + 2 * step}))
    following = [p for p, (_, index) in before.items() if p in after and after[p][1] - index == 2 * step]
    tightest_first = sorted(following, key=lambda p: before[p][0] - before[p][1])
    return next((p for p in tightest_first if _ends(prober, ties, root, p, before[p])), None)


def _ends(prober: Prober, ties: Ties, root: str, path: str, at: tuple[int, int]) -> bool:
    """Whether a table whose largest index follows a size at first does so to its end, and no further."""
    step, size = ties.steps.get(root, 1), ties.roots[root]
    rows, index = at
    last = (rows - 1 - index + size) // step * step
    further = min(last, max(4 * size, 64 // step * step))
    far = _largest_indices(prober, ties.shapes(**{root: further}))
    if path not in far or far[path][1] - index != further - size:  # distances that are put into buckets follow only at first
        return False
    if not _affordable(prober, ties, root, last + step, MOST_WORK):
        return True
    return not _largest_indices(prober, ties.shapes(**{root: last + step}))  # a table may be wrapped around


def _largest_indices(prober: Prober, shapes: Shapes) -> dict[str, tuple[int, int]]:
    """Return {embedding: (rows, largest index)} of a call; nothing if the model refuses it."""
    made = tuple(_all_real(resized(t, s, p), p) for t, s, p in zip(prober.tensors, shapes, prober.parts, strict=True))
    try:
        # ids are all one, so that an index which grows is one that the model counts by itself
        tables = observe(prober.module, made).tables
    except Exception:  # the larger size may be one too many; then trying tells
        return {}
    found: dict[str, tuple[int, int]] = {}
    for path, rows, index in tables:
        if index.numel():
            found[path] = (rows, max(int(index.max()), found.get(path, (rows, 0))[1]))
    return found


def _all_real(tensor: torch.Tensor, part: InputRole) -> torch.Tensor:
    """Return an input without padding: some models do not count padded tokens, which hides how far their positions go."""
    if part.role == "ids" and tensor.numel():
        return torch.full_like(tensor, (part.low + part.high) // 2)
    return torch.ones_like(tensor) if part.role == "mask" and bool((tensor != 0).any()) else tensor


# --- upwards, by trying ----------------------------------------------------------------------------


def _from_trying(prober: Prober, ties: Ties, root: str) -> Limit | None:
    """Return the bound found by running one past the sizes of the model's tables, and at a few larger sizes."""
    if _is_batch(ties, root):
        return None
    step, good = ties.steps.get(root, 1), ties.roots[root]
    tables = dict(_candidates(prober.module, good))
    tries = [((rows // step + 1) * step, MOST_WORK) for rows in tables] + [
        (n // step * step, LITTLE_WORK) for n in (32, 128, 512) if n > good
    ]
    tries = [(size, work) for size, work in sorted(tries) if _affordable(prober, ties, root, size, work)]
    least = _least(prober, ties, root) if tries else {}
    for size, _ in tries:
        said = prober.refusal(ties.shapes(**{**least, root: size}))
        if said is None:
            good = max(good, size)
        elif said.text != NOT_TRIED:
            high = _largest(prober, ties, root, least, good=good, bad=size)
            return Limit(high, f"{_shown(tables[high])} has {high} rows" if high in tables else why_fixed(said, high))
    return None


def _is_batch(ties: Ties, root: str) -> bool:
    """Whether a root is the first size of inputs that have other sizes which move: nothing bounds a batch."""
    axes = [axis for axis, size in ties.sizes.items() if size == root]
    return all(a == 0 for _, a in axes) and any((i, a) in ties.sizes for i, _ in axes for a in range(1, 6))


def _least(prober: Prober, ties: Ties, root: str) -> dict[str, int]:
    """Return the smallest sizes for the other roots, so that a long call stays cheap."""
    least = {r: 1 for r in ties.roots if r != root and r not in ties.steps}
    return least if prober.runs(ties.shapes(**least)) else {}


def _largest(prober: Prober, ties: Ties, root: str, least: dict[str, int], *, good: int, bad: int) -> int:
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
    for path, tensor in [*module.named_buffers(), *module.named_parameters()]:
        likely = re.search(r"pos|pe\b|\bpe|bias|mask|tril|freq|cos|sin|rel|table|cache|emb", path.lower())
        rows = tensor.shape[:1] if tensor.dim() == 2 else tensor.shape  # of a plain table, columns are features
        for size in rows if likely and tensor.dim() >= 2 else ():
            if size > above:
                found.setdefault(int(size), path)
    yield from sorted(found.items())[:MOST_CANDIDATES]


def _affordable(prober: Prober, ties: Ties, root: str, size: int, work: int) -> bool:
    elements = sum(torch.Size(s).numel() for s in ties.shapes(**{root: size}))
    return elements <= MOST_ELEMENTS and elements * size <= MOST_PAIRS and elements * prober.weights <= work


def _shown(path: str) -> str:
    return path.removeprefix("model.").removesuffix(".weight") or "the model"
