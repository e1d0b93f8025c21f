"""Objects put back as they were, each kind in its own way, into the very object. Twice is once.

At no moment is anything missing that another thread may be looking at.
"""

from __future__ import annotations

import io
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch

from torchferry.eager.reached import MISSING, slots
from torchferry.foreign.torch_tensors import parts_of_sparse

Restore = Callable[[], None]


def object_back(value: Any, kind: type, attributes: dict[str, Any]) -> None:
    """Let an object be of its class, and its attributes those that it had, after `self.__dict__ = ...`."""
    if type(value) is not kind:
        value.__class__ = kind
    if vars(value) is not attributes:
        object.__setattr__(value, "__dict__", attributes)


def slots_back(value: Any, saved: dict[str, Any]) -> None:
    """Put back what an object holds in slots."""
    now = slots(value, written_in_python=True)
    for name in now.keys() - saved.keys():
        object.__delattr__(value, name)
    for name, held in saved.items():
        if now.get(name, MISSING) is not held:
            object.__setattr__(value, name, held)


def class_back(kind: type, saved: dict[str, Any]) -> None:
    """Put back the attributes of a class, its methods among them."""
    now = attributes_of(kind)
    for name in now.keys() - saved.keys():
        delattr(kind, name)
    for name, held in saved.items():
        if name not in now or now[name] is not held:
            setattr(kind, name, held)


def attributes_of(kind: type) -> dict[str, Any]:
    """Return what a class has of its own, but for what Python keeps there."""
    return {name: held for name, held in vars(kind).items() if not name.startswith("__")}


def function_back(function: FunctionType, defaults: Any, by_name: Any, closed_over: list[tuple[CellType, Any]]) -> None:
    """Put back the default arguments of a function, and what it closes over."""
    if function.__defaults__ is not defaults:
        function.__defaults__ = defaults
    if function.__kwdefaults__ is not by_name:
        function.__kwdefaults__ = by_name
    for cell, held in closed_over:
        if cell == CellType() or cell.cell_contents is not held:
            cell.cell_contents = held


def cache_back(cache: Any, size: int) -> None:
    """Empty a cache of results that has grown: what it was asked for are copies, which it would keep alive."""
    if cache.cache_info().currsize != size:
        cache.cache_clear()


def dict_back(value: dict[Any, Any], saved: dict[Any, Any], part: bool = False) -> None:
    """Put back a dict, or a part of it, one key at a time: another thread may be reading it."""
    plain: Any = plainly(value)
    if part or _same(plain.__iter__(value), saved):
        for key, held in saved.items():
            if held is MISSING:
                plain.pop(value, key, None)
            elif plain.get(value, key, MISSING) is not held:
                plain.__setitem__(value, key, held)
        return
    for key in [k for k in plain.__iter__(value) if k not in saved]:
        with suppress(KeyError):
            plain.__delitem__(value, key)
    in_order = _same(plain.__iter__(value), list(saved)[: len(value)])
    for key, held in saved.items():
        if not in_order:
            with suppress(KeyError):
                plain.__delitem__(value, key)
        plain.__setitem__(value, key, held)


def plainly(value: dict[Any, Any]) -> type[dict[Any, Any]]:
    """Return the class whose methods get at what a dict holds: a subclass may make something of it each time it is asked."""
    return OrderedDict if isinstance(value, OrderedDict) else dict


def list_back(value: list[Any], saved: list[Any]) -> None:
    """Put back the items of a list."""
    if not _same(list.__iter__(value), saved):
        list.__setitem__(value, slice(None), saved)


def set_back(value: set[Any], saved: set[Any]) -> None:
    """Put back the members of a set."""
    set.update(value, saved)
    set.intersection_update(value, saved)


def deque_back(value: deque[Any], saved: list[Any]) -> None:
    """Put back the items of a deque."""
    if not _same(deque.__iter__(value), saved):
        deque.clear(value)
        deque.extend(value, saved)


def _same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether two rows are of the same objects; what these think of being compared is not asked."""
    some, others = list(some), list(others)
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def text_back(value: io.StringIO | io.BytesIO, saved: Any, position: int) -> None:
    """Put back a file in memory."""
    if value.getvalue() != saved:
        value.seek(0)
        value.truncate()
        value.write(saved)
    value.seek(position)


def position_back(file: io.IOBase, position: int) -> None:
    """Let a file be read from where it was."""
    if not file.closed:
        file.seek(position)


def array_back(value: np.ndarray, saved: np.ndarray) -> None:
    """Put back the values of an array."""
    if value.shape != saved.shape:  # `resize` in place
        value.resize(saved.shape, refcheck=False)
    value[...] = saved


def memory_of(value: Any) -> np.ndarray | None:
    """Return the bytes that an object lays open, if they can be written: mapped memory, a memoryview, an array of ctypes."""
    try:
        found = np.frombuffer(value, np.uint8)
    except Exception:  # it gives access to none, or it is closed; each kind says so in its own way
        return None
    return found if found.flags.writeable else None


def memory_back(value: Any, saved: np.ndarray) -> None:
    """Put back the bytes that an object gives access to."""
    if (now := memory_of(value)) is not None and now.shape == saved.shape:
        now[...] = saved


def size_back(storage: torch.UntypedStorage, size: int) -> None:
    """Let a tensor's memory be as large as it was."""
    if storage.nbytes() != size:
        storage.resize_(size)


def tensor_back(tensor: torch.Tensor, alias: torch.Tensor, requires_grad: bool, grad: torch.Tensor | None) -> None:
    """Let a tensor be the memory that it was, after `tensor.data = ...` or `resize_`."""
    if (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype) != (
        alias.data_ptr(), alias.shape, alias.stride(), alias.dtype,
    ):  # fmt: skip
        tensor.data = alias
    if tensor.is_leaf:
        if tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)
        if tensor.grad is not grad:
            tensor.grad = grad


def values_back(tensor: torch.Tensor) -> Restore:
    """Return what puts back a tensor's values as they are now."""
    with torch.inference_mode(tensor.is_inference()):
        alias = tensor.detach()
        saved = alias.clone()

    def back() -> None:
        if not torch.equal(alias, saved):
            with torch.no_grad(), torch.inference_mode(saved.is_inference()):
                (alias if saved.is_inference() else alias.data).copy_(saved)

    return back


def sparse_back(tensor: torch.Tensor) -> Restore:
    """Return what puts back a sparse tensor as it is now: what it consists of may be replaced."""
    saved = tensor.detach().clone()

    def back() -> None:
        parts = zip(parts_of_sparse(tensor), parts_of_sparse(saved), strict=True)
        if tensor.shape != saved.shape or not all(torch.equal(now, before) for now, before in parts):
            with torch.no_grad():
                tensor.copy_(saved)

    return back
