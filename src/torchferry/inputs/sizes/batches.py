"""First sizes that belong to one batch though the model would take them apart: each row of the output follows one row of each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from torchferry.inputs.sizes.probing import Prober, observe
from torchferry.inputs.sizes.search_state import Ties
from torchferry.inputs.values.roles import InputRole
from torchferry.inputs.values.vary import resized


def tie_batches(prober: Prober, ties: Ties) -> None:
    """Tie first sizes that move alone where the last row of each decides the last row of an output, and no other row.

    Some encoder-decoder models take a different number of rows on either side and mix them up; nobody means that.
    """
    roots = [r for r, size in ties.roots.items() if size >= 2 and r not in ties.ends and _only_first(ties, r)]
    if len(roots) < 2:
        return
    rows = {root: changed for root in roots if (changed := _rows_changed(prober, ties, root)) is not None}
    for one, two in itertools.combinations(rows, 2):
        if two in ties.roots and one in ties.roots and ties.roots[one] == ties.roots[two] and rows[one] & rows[two]:
            ties.merge(two, one)


def _only_first(ties: Ties, root: str) -> bool:
    return all(size == root and axis == 0 for (_, axis), size in ties.sizes.items() if root in str(size))


def _rows_changed(prober: Prober, ties: Ties, root: str) -> frozenset[str] | None:
    """Return the outputs of which only the last row changes with the last row of a root's inputs; None if another row does."""
    tensors = [resized(t, s, p) for t, s, p in zip(prober.tensors, ties.base, prober.parts, strict=True)]
    inputs = {i for (i, _), size in ties.sizes.items() if size == root}
    other = [_last_row_changed(t, prober.parts[i]) if i in inputs else t for i, t in enumerate(tensors)]
    try:
        before, after = (dict(observe(prober.module, ts).outputs) for ts in (tensors, other))
    except Exception:  # a model that refuses these values says nothing about its batch
        return None
    changed = set()
    for name, rows in _changed_rows(before, after):
        if rows - {ties.roots[root] - 1}:
            return None
        changed |= {name} if rows else set()
    return frozenset(changed)


def _changed_rows(before: dict[str, object], after: dict[str, object]) -> Iterator[tuple[str, set[int]]]:
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and old.dim() and old.shape == new.shape:
            same = torch.isclose(old.double(), new.double(), equal_nan=True) if not old.is_complex() else old == new
            yield name, {int(i) for i in (~same).reshape(old.shape[0], -1).any(1).nonzero()} if old.numel() else set()


def _last_row_changed(tensor: torch.Tensor, part: InputRole) -> torch.Tensor:
    changed = tensor.clone()
    if part.role in ("float", "cache"):
        changed[-1] = changed[-1] * 0.5 + 1
    elif part.role in ("ids", "int"):
        changed[-1] = (changed[-1] - part.low + 1) % max(part.high - part.low, 1) + part.low
    return changed
