"""Which tables of a model are looked up, at which rows, and what it searches in: seen at the operators, so that none hides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchferry.eager.watching import Watching
from torchferry.foreign.torch_operators import schema_name

Lookup = tuple[str, int, torch.Tensor]  # the table's path, its rows, and the indices into it


class Lookups(Watching):
    """Keeps every lookup of rows in a parameter or buffer, and what is searched by halving, while it is active."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.seen: list[Lookup] = []
        self.searched: list[torch.Tensor] = []
        self.indexed: list[tuple[int, torch.Tensor]] = []  # how far any index may go, and the indices: whatever they pick from
        tables = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        self.paths = {_key(t): path.removesuffix(".weight") for path, t in reversed(tables) if t.dim() >= 2 and _stored(t)}

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (sequence := _searched(func, args)) is not None:
            self.searched.append(sequence.detach())
        self.indexed += [(length, index.detach()) for length, index in _indices(func, args)]
        found = _rows_asked_for(func, args)
        if found is not None and _stored(found[0]) and (path := self.paths.get(_key(found[0]))) is not None:
            self.seen.append((path, found[0].shape[0], found[1].detach()))
        return func(*args, **kwargs)


def _searched(func: Any, args: Sequence[Any]) -> torch.Tensor | None:
    """Return what an operator takes to be sorted, or None."""
    place = {"aten::searchsorted": 0, "aten::bucketize": 1}.get(schema_name(func))
    return None if place is None or not isinstance(args[place], torch.Tensor) else args[place]


def _rows_asked_for(func: Any, args: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return a table and the rows that an operator takes from it, or None if it does no such thing."""
    name = schema_name(func)
    if name == "aten::embedding":
        return args[0], args[1]
    if name == "aten::index_select" and args[1] == 0:
        return args[0], args[2]
    if name == "aten::index" and args[1] and isinstance(args[1][0], torch.Tensor) and args[1][0].dtype == torch.int64:
        return args[0], args[1][0]
    return None


def _indices(func: Any, args: Sequence[Any]) -> list[tuple[int, torch.Tensor]]:
    """Return the indices that an operator takes, each with the length of what it points into."""
    name = schema_name(func)
    if name == "aten::embedding":
        return [(args[0].shape[0], args[1])]
    if name in ("aten::index_select", "aten::gather", "aten::scatter", "aten::scatter_") and args[0].dim():
        return [(args[0].shape[args[1]], args[2])]
    if name == "aten::index":
        whole = [
            (axis, i) for axis, i in enumerate(args[1]) if isinstance(i, torch.Tensor) and i.dtype in (torch.int64, torch.int32)
        ]
        return [(args[0].shape[axis], i) for axis, i in whole]
    return []


def _stored(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _key(tensor: torch.Tensor) -> tuple[int, torch.Size]:
    return tensor.data_ptr(), tensor.shape
