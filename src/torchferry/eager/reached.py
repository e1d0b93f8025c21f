"""What a call of a model may write to: found by following references from the model, and from the code that it runs.

Attributes, containers however nested, tensors, arrays, what functions close over, the globals that code of the user's own names,
objects and classes of the user's own. Weak references are followed as strong ones: what is written through them stays written.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from torchferry.whose_code import is_users, lies_nowhere

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
        if type(value) in weakref.ProxyTypes:
            value = _behind(value)
        if id(value) not in found and not isinstance(value, PLAIN):
            found[id(value)] = value
            left += _held_by(value)
    return list(found.values())


def _held_by(value: Any) -> list[Any]:
    match value:
        case torch.jit.ScriptModule():
            return []  # it keeps its state in C++
        case torch.nn.Module():
            return [vars(value), *slots(value).values(), type(value)]
        case torch.Tensor():
            return [vars(value), *([value.grad] if value.is_leaf else [])]
        case dict():
            return [*dict.keys(value), *dict.values(value), *_more(value)]  # not those of a subclass, which may load them
        case list() | tuple() | set() | frozenset() | deque():
            return [*value, *_more(value)]
        case types.MappingProxyType():
            return [*value.values()]
        case np.ndarray():
            return [*(value.flat if value.dtype == object else ()), value.base, *_more(value)]
        case weakref.ReferenceType():
            return [value()]
        case weakref.WeakKeyDictionary() | weakref.WeakValueDictionary() | weakref.WeakSet():
            return [vars(value)]
        case threading.local():
            return [vars(value)]  # this thread's
        case contextvars.ContextVar():
            with suppress(LookupError):  # it has no value
                return [value.get()]  # this context's
            return []
        case CACHE():
            return [value.__wrapped__, vars(value)]
        case types.FunctionType():
            named = [held for _, known in named_globals(value) for held in known.values() if held is not MISSING]
            return [*(held for _, held in cells(value)), value.__defaults__, value.__kwdefaults__, vars(value), *named]
        case types.MethodType():
            return [value.__self__, value.__func__]
        case types.BuiltinMethodType() | types.MethodWrapperType():
            return [value.__self__]  # `self.push = things.append`
        case functools.partial():
            return [value.func, value.args, value.keywords]
        case type():
            if not is_own(value):
                return []
            return [*own_attributes(value).values(), *value.__bases__, *_functions_of(value), type(value)]
        case _ if is_own(type(value)):
            return [*slots(value).values(), own_dict(value), type(value)]
        case _:
            return []


def is_own(kind: type) -> bool:
    """Whether a class is neither torch's nor Python's own."""
    return str(kind.__module__).partition(".")[0] not in FOREIGN or kind.__module__.startswith("torchferry.catalogue.")


def own_dict(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object; None where it has none of its own, as `list[int]`, which shows those of `list`."""
    held = getattr(value, "__dict__", None)
    return held if isinstance(held, dict) else None


def own_attributes(kind: type) -> dict[str, Any]:
    """Return what a class holds besides its code."""
    code = (types.FunctionType, classmethod, staticmethod, property, types.MemberDescriptorType, types.GetSetDescriptorType)
    return {k: v for k, v in vars(kind).items() if not k.startswith("__") and not isinstance(v, code)}


def slots(value: Any, *, written_in_python: bool = False) -> dict[str, Any]:
    """Return what the slots of an object hold; those of a class written in C may be read, and not always written to."""
    kinds = [k for k in type(value).__mro__ if not written_in_python or "__slots__" in vars(k)]
    names = [n for k in kinds for n, held in vars(k).items() if isinstance(held, types.MemberDescriptorType)]
    return {n: getattr(value, n) for n in names if not n.startswith("__") and hasattr(value, n)}


def cells(function: types.FunctionType) -> list[tuple[types.CellType, Any]]:
    """Return the cells of what a function closes over, each with what it holds; empty ones are left out."""
    return [(c, c.cell_contents) for c in function.__closure__ or () if c != types.CellType()]


def named_globals(function: types.FunctionType) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the globals that a function of the user's own names, each time with the part of them that it names.

    They are those of its module, and of modules of the user's own that it names or imports: `counters.calls += 1`. What it sets
    though it is not there is MISSING.
    """
    if not _is_users(function.__code__.co_filename):
        return []
    names, *written = _names(function.__code__)
    spaces = [function.__globals__]
    for space in spaces:  # which grows on the way: a package leads to its modules
        for module in filter(None, (_users_module(space, name) for name in names)):
            if not any(vars(module) is known for known in spaces):
                spaces.append(vars(module))
    return [(space, _part(space, names, written[space is not function.__globals__])) for space in spaces]


def _part(space: dict[str, Any], names: Iterable[str], written: Iterable[str]) -> dict[str, Any]:
    there = {name: space[name] for name in names if _may_change(space.get(name, MISSING))}
    return there | {name: MISSING for name in written if name not in space}


def _users_module(space: dict[str, Any], name: str) -> types.ModuleType | None:
    """Return the module of the user's own that code means by a name: one of its globals, or one that it imports where it runs."""
    inside = f"{space.get('__package__')}.{name}"
    for held in (space.get(name), sys.modules.get(name), sys.modules.get(inside)):
        if isinstance(held, types.ModuleType) and is_users(getattr(held, "__file__", None) or ""):
            return held
    return None


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Return the names that code looks up, those of globals that it sets, and those of attributes; with what is inside of it."""
    told = list(dis.get_instructions(code))
    set_here = ({str(i.argval) for i in told if i.opname == kind} for kind in ("STORE_GLOBAL", "STORE_ATTR"))
    inner = [_names(held) for held in code.co_consts if isinstance(held, types.CodeType)]
    kinds = enumerate((set(code.co_names), *set_here))
    return tuple(tuple(sorted(own.union(*(found[k] for found in inner)))) for k, own in kinds)


def _may_change(value: Any) -> bool:
    """Whether what goes by a name may be written to: of code, the user's own alone, which leads to what else is."""
    if isinstance(value, types.FunctionType):
        return _is_users(value.__code__.co_filename)
    if isinstance(value, type):
        return is_own(value)
    if isinstance(value, types.BuiltinFunctionType):
        return not isinstance(value.__self__, types.ModuleType | type | None)
    return value is not MISSING and not isinstance(value, types.ModuleType)


def _is_users(file: str) -> bool:
    return is_users(file) or lies_nowhere(file)


def _functions_of(kind: type) -> list[types.FunctionType]:
    """Return the functions in a class, those behind properties and their like among them."""
    held = [inner for v in vars(kind).values() for inner in (v, *(getattr(v, name, None) for name in BEHIND))]
    return [v for v in held if isinstance(v, types.FunctionType)]


def _more(value: Any) -> list[Any]:
    """Return what an object of a subclass of a container has besides."""
    return [vars(value)] if hasattr(value, "__dict__") else []


def _behind(proxy: Any) -> Any:
    """Return what a weak proxy stands for, if that is still there."""
    try:
        return proxy.__init__.__self__
    except (ReferenceError, AttributeError):
        return None
