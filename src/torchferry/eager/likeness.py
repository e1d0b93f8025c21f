"""Whether a copy of a model is one: a `__deepcopy__` may draw weights anew, a `__getstate__` may leave out what a call needs."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from torchferry.eager.reached import PLAIN, is_own, own_dict, slots
from torchferry.eager.stand_ins import is_generator
from torchferry.foreign.torch_tensors import storage_identity


def is_like(copied: torch.nn.Module, module: torch.nn.Module) -> bool:
    """Return whether a copy has the parts, the attributes and the numbers of a model, in the same places and as much shared."""
    left: list[tuple[Any, Any]] = [(copied, module)]
    seen: set[int] = set()
    memory: set[tuple[int, int]] = set()
    while left:
        one, other = left.pop()
        if one is other or is_generator(one) or id(other) in seen:
            continue
        seen.add(id(other))
        if type(one) is not type(other) or (inside := _pairs(one, other)) is None:
            return False
        left += inside
        memory |= {(_memory(one), _memory(other))} if _memory(other) else set()
    return len(memory) == len({a for a, _ in memory}) == len({b for _, b in memory})


def _pairs(one: Any, other: Any) -> list[tuple[Any, Any]] | None:
    """Return what two objects of one type hold in the same places; None where they are not alike."""
    match one:
        case torch.Tensor():
            return [] if _same_numbers(one, other) else None
        case np.ndarray() if one.dtype != object:
            return [] if (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes()) else None
        case dict():
            return _of_dicts(one, other)
        case list() | tuple() | deque():
            return list(zip(one, other, strict=True)) if len(one) == len(other) else None
        case torch.jit.ScriptModule():  # torch copies what it keeps in C++; which methods it has at hand hangs on what was asked
            return _of_dicts(one.state_dict(), other.state_dict())
        case torch.nn.Module():
            return _of_objects(one, other)
        case _ if isinstance(one, PLAIN):
            return [] if one == other or (isinstance(one, float | complex) and str(one) == str(other)) else None
        case _ if is_own(type(one)) and not isinstance(one, type):
            return _of_objects(one, other)
    return []


def _of_objects(one: Any, other: Any) -> list[tuple[Any, Any]] | None:
    inside = _of_dicts(slots(one), slots(other))
    return None if inside is None else [*inside, (own_dict(one), own_dict(other))]


def _of_dicts(one: dict[Any, Any], other: dict[Any, Any]) -> list[tuple[Any, Any]] | None:
    """Return what two dicts hold under the same keys; the keys of a plain kind alone tell which these are."""
    if dict.__len__(one) != dict.__len__(other):
        return None
    plain = [{k: v for k, v in dict.items(held) if isinstance(k, PLAIN)} for held in (one, other)]
    return [(plain[0][k], plain[1][k]) for k in plain[0]] if plain[0].keys() == plain[1].keys() else None


def _memory(value: Any) -> int:
    """Return where the memory begins that a tensor or an array looks at: an array may be one more view of a weight."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray | torch.Tensor):
        value = value.base
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and not (value.is_meta or is_lazy(value))
    return value.untyped_storage().data_ptr() if plain else 0


def _same_numbers(one: torch.Tensor, other: torch.Tensor) -> bool:
    if type(one) not in (torch.Tensor, torch.nn.Parameter) or one.layout is not torch.strided or one.is_quantized:
        return True  # of a kind of its own: whoever wrote it sees to its copies
    if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
        return False
    return one.is_meta or storage_identity(one) == storage_identity(other) or torch.equal(_bytes(one), _bytes(other))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return what a tensor is in memory: NaN is the same as NaN there."""
    return tensor.detach().resolve_conj().resolve_neg().reshape(-1).view(torch.uint8)
