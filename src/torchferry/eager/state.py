"""The state of a model, saved by value and put back in place.

Everything that a call may write to is found by following references from the model: attributes, containers however nested,
tensors, arrays, generators of random numbers, objects and classes of the user's own. It is put back into the very objects it was
found in: a handle of a hook still removes its hook, and two modules that shared a list share it again. Putting back twice is
the same as once, and at no moment is anything missing that another thread may be looking at.
"""

from __future__ import annotations

import array
import functools
import io
import random
import sys
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from torchferry.eager.deferred import deferred_signals, surely
from torchferry.foreign.torch_dispatch import without_dispatch_modes, without_torch_function
from torchferry.whose_code import is_users, lies_nowhere

Restore = Callable[[], None]
MISSING = object()

# Nothing of these is a model's own: what they hold is torch's or Python's, or leads to all the rest of the program.
CONTAINERS = {"argparse", "collections", "queue", "types"}  # Python's own, of which objects are made to hold things
FOREIGN = {"torch", "numpy", "onnx", "onnxruntime", "torchferry", *sys.stdlib_module_names} - CONTAINERS
BEHIND = ("__func__", "fget", "fset", "func", "__wrapped__")  # where static and class methods, properties, caches have theirs
CACHE = type(functools.lru_cache(lambda: None))
PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, types.ModuleType)


def reached_from(roots: Iterable[Any]) -> list[Any]:
    """Return all objects that a call of some others may write to, each once: what they hold, and what that holds."""
    found: dict[int, Any] = {}
    left = list(roots)
    while left:
        value = left.pop()
        if id(value) not in found and not isinstance(value, PLAIN):
            found[id(value)] = value
            left += _held_by(value)
    return list(found.values())


def _held_by(value: Any) -> list[Any]:
    match value:
        case torch.jit.ScriptModule():
            return []  # it keeps its state in C++
        case torch.nn.Module():
            return [vars(value), type(value)]
        case torch.Tensor():
            return [vars(value), *([value.grad] if value.is_leaf else [])]
        case dict():
            return [*dict.values(value), *_more(value)]  # not those of a subclass, which may load them
        case list() | tuple() | set() | frozenset() | deque():
            return [*value, *_more(value)]
        case weakref.WeakKeyDictionary() | weakref.WeakValueDictionary() | weakref.WeakSet():
            return [vars(value)]
        case threading.local():
            return [vars(value)]  # this thread's
        case CACHE():
            return [value.__wrapped__, vars(value)]
        case types.FunctionType():
            cells = [c.cell_contents for c in value.__closure__ or () if c != types.CellType()]  # which is an empty one
            named = [held for _, known in _named_globals(value) for held in known.values()]
            return [*cells, value.__defaults__, value.__kwdefaults__, vars(value), *named]
        case types.MethodType():
            return [value.__self__, value.__func__]
        case functools.partial():
            return [value.func, value.args, value.keywords]
        case type():
            return [*_own_attributes(value).values(), *value.__bases__, *_functions_of(value)] if _is_own(value) else []
        case _ if _is_own(type(value)):
            return [*_slots(value).values(), _own_dict(value), type(value)]
        case _:
            return []


def _is_own(kind: type) -> bool:
    """Whether a class is neither torch's nor Python's own."""
    return str(kind.__module__).partition(".")[0] not in FOREIGN or kind.__module__.startswith("torchferry.catalogue.")


def _own_dict(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object; None where it has none of its own, as `list[int]`, which shows those of `list`."""
    held = getattr(value, "__dict__", None)
    return held if isinstance(held, dict) else None


def _more(value: Any) -> list[Any]:
    """Return what an object of a subclass of a container has besides."""
    return [vars(value)] if hasattr(value, "__dict__") else []


def _named_globals(function: types.FunctionType) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the globals that a function of the user's own names, each time with the part of them that it names.

    They are those of its module, and of modules of the user's own that it names: `counters.calls += 1`.
    """
    if not _is_users(function.__code__.co_filename):
        return []
    names, spaces = _names(function.__code__), [function.__globals__]
    spaces += [
        vars(held)
        for name in names
        if isinstance(held := function.__globals__.get(name), types.ModuleType)
        and is_users(getattr(held, "__file__", None) or "")
    ]
    return [(space, {name: space[name] for name in names if _may_change(space.get(name, MISSING))}) for space in spaces]


def _names(code: types.CodeType) -> dict[str, None]:
    """Return the names that code looks up, those of the functions and comprehensions in it among them."""
    names = dict.fromkeys(code.co_names)
    for held in code.co_consts:
        if isinstance(held, types.CodeType):
            names |= _names(held)
    return names


def _may_change(value: Any) -> bool:
    """Whether what goes by a name may be written to: of code, the user's own alone, which leads to what else is."""
    if isinstance(value, types.FunctionType):
        return _is_users(value.__code__.co_filename)
    if isinstance(value, type):
        return _is_own(value)
    return value is not MISSING and not isinstance(value, types.BuiltinFunctionType | types.ModuleType)


def _is_users(file: str) -> bool:
    return is_users(file) or lies_nowhere(file)


def _functions_of(kind: type) -> list[types.FunctionType]:
    """Return the functions in a class, those behind properties and their like among them."""
    held = [inner for v in vars(kind).values() for inner in (v, *(getattr(v, name, None) for name in BEHIND))]
    return [v for v in held if isinstance(v, types.FunctionType)]


def _own_attributes(kind: type) -> dict[str, Any]:
    """Return what a class holds besides its code."""
    code = (types.FunctionType, classmethod, staticmethod, property, types.MemberDescriptorType, types.GetSetDescriptorType)
    return {k: v for k, v in vars(kind).items() if not k.startswith("__") and not isinstance(v, code)}


def _slots(value: Any, *, written_in_python: bool = False) -> dict[str, Any]:
    """Return what the slots of an object hold; those of a class written in C may be read, and not always written to."""
    kinds = [k for k in type(value).__mro__ if not written_in_python or "__slots__" in vars(k)]
    names = [n for k in kinds for n, held in vars(k).items() if isinstance(held, types.MemberDescriptorType)]
    return {n: getattr(value, n) for n in names if not n.startswith("__") and hasattr(value, n)}


# what will be put back, outermost first
open_states: ContextVar[tuple[SavedState, ...]] = ContextVar("torchferry_open_states", default=())


class SavedState:
    """What a model, or a function that calls models, was when this was made.

    Tensors are saved by value, but for parameters: a copy of these is made only where `with_weights` says so, since forward
    seldom writes to them and they are large. That each still is the tensor that it was is seen to in any case.
    """

    def __init__(self, *roots: Any, with_weights: bool = False) -> None:
        self._restores: list[Restore] = []
        self._weights: list[torch.Tensor] = []
        with _plain_tensors():
            for value in reached_from(roots):
                self._restores += self._ways_back(value)
        if with_weights:
            self.save_weights()

    def save_weights(self) -> None:
        """Save the parameters by value too, as they are now."""
        with _plain_tensors():
            self._restores += [_values_back(p) for p in self._weights]
        self._weights = []

    def restore(self) -> None:
        """Put everything back as it was."""
        failed: list[Exception] = []
        with _plain_tensors():
            for restore in self._restores:
                try:
                    restore()
                except Exception as error:  # an object of the user's own that refuses to be set: the others still are
                    failed.append(error)
        if failed:
            raise failed[0]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Put everything back after the block, whatever happens in it and however often it is interrupted."""
        done, token = False, open_states.set((*open_states.get(), self))
        with deferred_signals() as signals:
            try:
                try:
                    yield
                finally:
                    signals.defer()
                    surely(self.restore)
                    done = True
            finally:  # an interrupt may have come before the first line above
                if not done:
                    signals.defer()
                    surely(self.restore)
                open_states.reset(token)

    def _ways_back(self, value: Any) -> list[Restore]:
        match value:
            case torch.Tensor():
                return self._tensor(value)
            case torch.nn.Module():
                return [functools.partial(_object_back, value, type(value), vars(value))]
            case types.FunctionType():
                return [functools.partial(_dict_back, space, named, part=True) for space, named in _named_globals(value) if named]
            case CACHE():
                return [functools.partial(_cache_back, value, value.cache_info().currsize)]
            case dict():
                return [functools.partial(_dict_back, value, dict(_plainly(value).items(value)))]
            case list():
                return [functools.partial(_list_back, value, list(value))]
            case set():
                return [functools.partial(_set_back, value, set(value))]
            case deque():
                return [functools.partial(_deque_back, value, list(value))]
            case bytearray() | array.array():
                return [functools.partial(value.__setitem__, slice(None), value[:])]
            case io.StringIO() | io.BytesIO() if not value.closed:
                return [functools.partial(_text_back, value, value.getvalue(), value.tell())]
            case np.ndarray() if value.dtype != object and value.flags.writeable:
                return [functools.partial(_array_back, value, value.copy())]
            case torch.Generator():
                return [functools.partial(value.set_state, value.get_state())]
            case random.Random():
                return [functools.partial(value.setstate, value.getstate())]
            case np.random.RandomState():
                return [functools.partial(value.set_state, value.get_state())]
            case np.random.Generator():
                return [functools.partial(setattr, value.bit_generator, "state", value.bit_generator.state)]
            case type() if _is_own(value):
                return [functools.partial(_attributes_back, value, _own_attributes(value))]
            case _ if _is_own(type(value)):
                held = _own_dict(value)
                back = [functools.partial(_object_back, value, type(value), held)] if held is not None else []
                return [*back, functools.partial(_slots_back, value, _slots(value, written_in_python=True))]
            case _:
                return []

    def _tensor(self, tensor: torch.Tensor) -> list[Restore]:
        if (
            is_lazy(tensor)
            or tensor.is_meta
            or tensor.is_inference()
            or tensor.layout is not torch.strided
            or tensor.is_quantized
        ):
            return []
        storage, size = tensor.untyped_storage(), tensor.untyped_storage().nbytes()
        grad = tensor.grad if tensor.is_leaf else None
        ways: list[Restore] = [
            lambda: _size_back(storage, size),
            functools.partial(_memory_back, tensor, tensor.detach(), tensor.requires_grad, grad),
        ]
        if isinstance(tensor, torch.nn.Parameter):
            self._weights.append(tensor)
            return ways
        return [*ways, _values_back(tensor)]


@contextmanager
def _plain_tensors() -> Iterator[None]:
    """Let tensors be copied as they are, whatever stands in for torch's operators around the block: a copy must not be fake."""
    with without_dispatch_modes(), without_torch_function():
        yield


def _object_back(value: Any, kind: type, attributes: dict[str, Any]) -> None:
    """Let an object be of its class, and its attributes those that it had, after `self.__dict__ = ...`."""
    if type(value) is not kind:
        value.__class__ = kind
    if vars(value) is not attributes:
        object.__setattr__(value, "__dict__", attributes)


def _slots_back(value: Any, saved: dict[str, Any]) -> None:
    for name in _slots(value, written_in_python=True).keys() - saved.keys():
        object.__delattr__(value, name)
    for name, held in saved.items():
        object.__setattr__(value, name, held)


def _cache_back(cache: Any, size: int) -> None:
    """Empty a cache of results that has grown: what it was asked for are copies, which it would keep alive."""
    if cache.cache_info().currsize != size:
        cache.cache_clear()


def _dict_back(value: dict[Any, Any], saved: dict[Any, Any], part: bool = False) -> None:
    """Put back a dict, or a part of it, one key at a time: another thread may be reading it."""
    plain: Any = _plainly(value)
    if part or _same(plain.__iter__(value), saved):
        for key, held in saved.items():
            if plain.get(value, key, MISSING) is not held:
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


def _plainly(value: dict[Any, Any]) -> type[dict[Any, Any]]:
    """Return the class whose methods get at what a dict holds: a subclass may make something of it each time it is asked."""
    return OrderedDict if isinstance(value, OrderedDict) else dict


def _list_back(value: list[Any], saved: list[Any]) -> None:
    if not _same(list.__iter__(value), saved):
        list.__setitem__(value, slice(None), saved)


def _set_back(value: set[Any], saved: set[Any]) -> None:
    set.update(value, saved)
    set.intersection_update(value, saved)


def _deque_back(value: deque[Any], saved: list[Any]) -> None:
    if not _same(deque.__iter__(value), saved):
        deque.clear(value)
        deque.extend(value, saved)


def _same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether two rows are of the same objects; what these think of being compared is not asked."""
    some, others = list(some), list(others)
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _text_back(value: io.StringIO | io.BytesIO, saved: Any, position: int) -> None:
    if value.getvalue() != saved:
        value.seek(0)
        value.truncate()
        value.write(saved)
    value.seek(position)


def _array_back(value: np.ndarray, saved: np.ndarray) -> None:
    if value.shape != saved.shape:  # `resize` in place
        value.resize(saved.shape, refcheck=False)
    value[...] = saved


def _attributes_back(kind: type, saved: dict[str, Any]) -> None:
    now = _own_attributes(kind)
    for name in now.keys() - saved.keys():
        delattr(kind, name)
    for name, held in saved.items():
        if name not in now or now[name] is not held:
            setattr(kind, name, held)


def _size_back(storage: torch.UntypedStorage, size: int) -> None:
    if storage.nbytes() != size:
        storage.resize_(size)


def _memory_back(tensor: torch.Tensor, alias: torch.Tensor, requires_grad: bool, grad: torch.Tensor | None) -> None:
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


def _values_back(tensor: torch.Tensor) -> Restore:
    alias = tensor.detach()
    saved = alias.clone()

    def back() -> None:
        if not torch.equal(alias, saved):
            with torch.no_grad():
                alias.data.copy_(saved)

    return back
