"""What each input is for, judged by its name, dtype and values: so that other inputs stay plausible."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

Role = Literal["float", "cache", "ids", "mask", "types", "lengths", "positions", "int", "bool", "number"]
ROLES: tuple[Role, ...] = ("float", "cache", "ids", "mask", "types", "lengths", "positions", "int", "bool", "number")
FLOATS: frozenset[Role] = frozenset({"float", "cache"})
INTS: frozenset[Role] = frozenset({"ids", "int", "types"})
MASKS: frozenset[Role] = frozenset({"mask"})
WHOLE: frozenset[Role] = INTS | {"positions", "lengths", "number"}
NUMBERS: frozenset[Role] = FLOATS | WHOLE  # what can lie below, at and above a number
ANY: frozenset[Role] = frozenset(ROLES)


@dataclass(frozen=True, slots=True)
class InputRole:
    """An input's role, and the bounds that keep its values plausible: `low <= value < high` for integers."""

    role: Role
    low: int = 0
    high: int = 2
    rising: bool = False  # sorted along the last axis
    falling: bool = False
    below: tuple[int, int] | None = None  # the (input, axis) whose size bounds the values
    searched: bool = False  # by halving, so that it must be sorted along the last axis whatever it holds
    named: bool = True  # a mask by its name, and not only by its zeros and ones: a bag of words, an adjacency
    draw: str = ""  # how other values are drawn where the model refuses free ones; see draws.py
    domain: tuple[float, float] | None = None  # the values that the caller says are all there are, both ends included


Fill = Callable[[torch.Tensor, InputRole, torch.Generator], torch.Tensor]  # a plausible tensor -> the one to use


def parts(
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    tables: Mapping[int, int],
    numbers: frozenset[int],
    searched: frozenset[int] = frozenset(),
    indices: Mapping[int, int] | None = None,
) -> tuple[InputRole, ...]:
    """Return the part that each input plays.

    `tables`: input -> rows of the embedding it indexes; `numbers`: scalar inputs; `searched`: those that must be sorted;
    `indices`: input -> length of whatever else it indexes.
    """
    return tuple(
        InputRole("number", *_span(t))
        if i in numbers
        else replace(_part(i, n, t, tensors, tables.get(i), (indices or {}).get(i)), searched=i in searched)
        for i, (n, t) in enumerate(zip(names, tensors, strict=True))
    )


def pointing(parts: Sequence[InputRole], axis: tuple[int, int], size: int) -> tuple[InputRole, ...]:
    """Return the parts with the integers that reach past `size` bound to an axis: they are indices into it."""
    return tuple(
        replace(p, below=axis)
        if p.role in ("int", "ids", "positions") and p.below is None and p.high > size and i != axis[0]
        else p
        for i, p in enumerate(parts)
    )


def _part(
    index: int, name: str, tensor: torch.Tensor, tensors: Sequence[torch.Tensor], rows: int | None, length: int | None = None
) -> InputRole:
    says = re.split(r"[._\d]+", name.lower())
    masky = any(w in says or name.lower().endswith(w) for w in ("mask", "pad", "padding", "valid", "masks"))
    if tensor.dtype == torch.bool:
        return InputRole("mask", named=masky) if tensor.dim() and (masky or tensor.dim() >= 2) else InputRole("bool")
    if tensor.is_floating_point() or tensor.is_complex():
        if masky and tensor.numel() and bool(((tensor == 0) | (tensor == 1)).all()):
            return InputRole("mask")
        return InputRole("cache" if re.search(r"(^|\.)\d+\.(\w+\.)?(key|value)$", name) else "float")
    if not tensor.numel():
        return InputRole("ids", 0, rows or 2)
    low, high = _span(tensor)
    rising, falling = _order(tensor)
    if rows is not None and not (masky or "position" in says):
        return InputRole("types" if "type" in says else "ids", min(low, 0), max(rows, high), rising, falling)
    if length is not None and low >= 0 and not (masky or "position" in says or any(w.startswith("len") for w in says)):
        return InputRole("int", 0, max(length, high), rising, falling)
    if "type" in says and high <= 4:
        return InputRole("types", 0, max(high, 2))
    if masky or (tensor.dim() >= 2 and high <= 2 and low >= 0 and "ids" not in says and bool((tensor == 1).any())):
        return InputRole("mask", named=masky)
    if _is_range(tensor) or "position" in says or "positions" in says:
        return InputRole("positions", low, rows or high)
    if (where := _padded_length(index, says, tensor, tensors)) is not None:
        return InputRole("lengths", 1, high, rising, falling, where)
    if "ids" in says:
        return InputRole("ids", min(low, 0), high, rising, falling)
    return InputRole("int", low, high, rising, falling)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    flat = tensor.to(torch.float64) if not tensor.is_complex() else tensor.abs().to(torch.float64)
    return int(flat.min().item()), int(flat.max().item()) + 1


def _order(tensor: torch.Tensor) -> tuple[bool, bool]:
    if tensor.dim() == 0 or tensor.shape[-1] < 2:
        return False, False
    steps = tensor.to(torch.int64).diff(dim=-1)
    return bool((steps >= 0).all() and (steps > 0).any()), bool((steps <= 0).all() and (steps < 0).any())


def _is_range(tensor: torch.Tensor) -> bool:
    if tensor.dim() == 0 or tensor.shape[-1] < 3:
        return False
    return bool((tensor.to(torch.int64).diff(dim=-1) == 1).all())


def _padded_length(index: int, says: list[str], tensor: torch.Tensor, tensors: Sequence[torch.Tensor]) -> tuple[int, int] | None:
    """Return the (input, axis) of which a one-dimensional input gives the lengths, or None if it gives none."""
    if tensor.dim() != 1 or (not any(w.startswith("len") for w in says) and tensor.numel() < 2):
        return None
    longest = int(tensor.max())
    if int(tensor.min()) < 1:
        return None
    named = any(w.startswith("len") or w.endswith("lens") for w in says)
    for i, other in enumerate(tensors):
        if i == index or other.dim() < 2 or tensor.shape[0] not in other.shape:
            continue
        for axis, size in enumerate(other.shape):
            if (size == longest and not (axis == 0 and size == tensor.shape[0])) or (named and axis == 1 and size >= longest):
                return i, axis
    return None
