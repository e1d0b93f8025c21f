"""Eager with its ties broken as ONNX breaks them: of equal keys the one with the lower index comes first, everywhere."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class LowestFirst(TorchDispatchMode):
    """While it is on, every op that puts in order, or picks the largest or smallest, prefers the lower of equal indices."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch would import its whole compiler to say so

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        taken = {**dict(zip((a.name for a in func._schema.arguments), args, strict=False)), **(kwargs or {})}
        keys = taken.get("self")
        if func.overloadpacket not in _ORDERED or not isinstance(keys, torch.Tensor) or not keys.dim() or _nan(keys):
            return func(*args, **(kwargs or {}))
        return _ORDERED[func.overloadpacket](func, taken)


def _nan(keys: torch.Tensor) -> bool:
    return bool(keys.isnan().any())


def _ordered(taken: dict[str, Any], descending: bool, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.sort(taken["self"], dim=dim, descending=descending, stable=True)
    return values, indices


def _topk(func: Any, taken: dict[str, Any]) -> Any:
    dim = taken.get("dim", -1)
    found = _ordered(taken, taken.get("largest", True), dim)
    return tuple(f.narrow(dim, 0, taken["k"]).contiguous() for f in found)


def _sort(func: Any, taken: dict[str, Any]) -> Any:
    return _ordered(taken, bool(taken.get("descending", False)), taken.get("dim", -1))


def _pick(descending: bool) -> Any:
    def picked(func: Any, taken: dict[str, Any]) -> Any:
        dim, keep = taken.get("dim"), taken.get("keepdim", False)
        if dim is None:
            flat = {"self": taken["self"].reshape(-1)}
            return _ordered(flat, descending, 0)[1][0] if func.overloadpacket in _PLACES else func(taken["self"])
        first = tuple(f.narrow(dim, 0, 1) if keep else f.select(dim, 0) for f in _ordered(taken, descending, dim))
        return first[1] if func.overloadpacket in _PLACES else first

    return picked


_PLACES = (aten.argmax, aten.argmin)
_ORDERED: dict[Any, Any] = {
    aten.topk: _topk,
    aten.sort: _sort,
    aten.argmax: _pick(descending=True),
    aten.argmin: _pick(descending=False),
    aten.max: _pick(descending=True),
    aten.min: _pick(descending=False),
}
