"""`int(0.5 * n)`, `math.sqrt(n)`, `np.prod(shape)`, `len(x)`: arithmetic on sizes that move stays symbolic.

Python's own functions must give back plain numbers, and so would freeze the example's size into the program. In the
modules that hold the model's code, the names of these functions stand for ones that know symbolic numbers.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import GeneratorType, ModuleType
from typing import Any

import numpy as np
import torch

from torchferry.capture import source_map
from torchferry.capture.patches.replace import replaced

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_AS_DTYPE = re.compile(r"(?:dtype\s*=\s*|\.(?:to|type|astype|view)\(\s*)(int|float)\b")
_BY_EXAMPLE = ContextVar("by_example", default=False)


class Number:
    """Stands for `int` or `float`: leaves symbolic numbers symbolic, and passes for the type in isinstance."""

    def __init__(self, real: type, symbolic: Callable[[Any], Any]) -> None:
        self.real, self.symbolic = real, symbolic

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if builtins.len(args) == 1 and isinstance(args[0], _SYMBOLS):
            return self.symbolic(args[0])
        if builtins.len(args) == 1 and isinstance(args[0], torch.Tensor):
            value = args[0].item()
            return self.symbolic(value) if isinstance(value, _SYMBOLS) else self.real(value)
        return self.real(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.real)

    def __subclasscheck__(self, other: type) -> bool:
        return issubclass(other, self.real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __or__(self, other: Any) -> Any:
        return self.real | other

    def __eq__(self, other: object) -> bool:
        return other is self.real or other is self

    def __hash__(self) -> int:
        return hash(self.real)


def symbolic_len(thing: Any) -> Any:
    """Return `len`, with a tensor's moving size left symbolic."""
    return thing.size(0) if isinstance(thing, torch.Tensor) and thing.dim() else builtins.len(thing)


@contextmanager
def extremes_by_example() -> Iterator[None]:
    """Let `max` and `min` of sizes be the one that the example's sizes say, under a guard that says so, for the block.

    A size such as `1 - max(0, 1 - n)` says too little to torch where shapes must fit; that n is at least 1 says enough.
    """
    before = _BY_EXAMPLE.set(True)
    try:
        yield
    finally:
        _BY_EXAMPLE.reset(before)


def _extreme(plain: Callable[..., Any], symbolic: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def pick(*args: Any, **kwargs: Any) -> Any:
        if builtins.len(args) == 1 and isinstance(args[0], GeneratorType):
            args = (list(args[0]),)
        items = args if builtins.len(args) > 1 else args[0] if args and isinstance(args[0], list | tuple) else ()
        if (
            not kwargs
            and not _BY_EXAMPLE.get()
            and any(isinstance(i, _SYMBOLS) for i in items)
            and all(isinstance(i, (*_SYMBOLS, int, float)) for i in items)
        ):
            return functools.reduce(symbolic, items)
        return plain(*args, **kwargs)

    return pick


_NAMES: dict[str, Any] = {
    "int": Number(builtins.int, torch.sym_int),
    "float": Number(builtins.float, torch.sym_float),
    "len": symbolic_len,
    "max": _extreme(builtins.max, torch.sym_max),
    "min": _extreme(builtins.min, torch.sym_min),
}


def _unary(plain: Callable[..., Any], symbolic: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], _SYMBOLS):
            return symbolic(*args)
        return plain(*args, **kwargs)

    return call


def _product(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not kwargs and isinstance(args[0], list | tuple) and any(isinstance(i, _SYMBOLS) for i in args[0]):
            return functools.reduce(lambda a, b: a * b, args[0], 1)
        return plain(*args, **kwargs)

    return call


def _sum(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not kwargs and isinstance(args[0], list | tuple) and any(isinstance(i, _SYMBOLS) for i in args[0]):
            return functools.reduce(lambda a, b: a + b, args[0], 0)
        return plain(*args, **kwargs)

    return call


def _math() -> dict[str, Any]:
    names = ("log", "log2", "log10", "log1p", "exp", "sin", "cos", "tan", "tanh", "sinh", "cosh", "atan")
    return {"sqrt": _unary(math.sqrt, torch._sym_sqrt), **{name: _unary(getattr(math, name), _in_torch(name)) for name in names}}


def _in_torch(name: str) -> Callable[..., Any]:
    """A function that a program has for tensors only: the number becomes one, of double precision and without axes."""

    def compute(number: Any, base: float | None = None) -> Any:
        value = getattr(torch, name)(torch.scalar_tensor(number, dtype=torch.float64))
        return value if base is None else value / math.log(base)

    return compute


def _numpy() -> dict[str, Any]:
    return {
        "prod": _product(np.prod),
        "sum": _sum(np.sum),
        "sqrt": _unary(np.sqrt, torch._sym_sqrt),
        "log": _unary(np.log, _in_torch("log")),
        "log2": _unary(np.log2, _in_torch("log2")),
        "exp": _unary(np.exp, _in_torch("exp")),
        "ceil": _unary(np.ceil, lambda n: torch.sym_float(math.ceil(n))),
        "floor": _unary(np.floor, lambda n: torch.sym_float(math.floor(n))),
        "maximum": _extreme(np.maximum, torch.sym_max),
        "minimum": _extreme(np.minimum, torch.sym_min),
    }


@contextmanager
def patch(module: Any) -> Iterator[None]:
    """Let the model's code see the symbolic functions for the block."""
    with ExitStack() as stack:
        stack.enter_context(replaced(math, _math()))
        stack.enter_context(replaced(np, _numpy()))
        for home in homes(module):
            kept = {*vars(home), *used_as_dtypes(home.__file__ or "")}
            own = {name: value for name, value in _NAMES.items() if name not in kept}
            stack.enter_context(replaced(home, own))
        yield


@functools.cache
def used_as_dtypes(file: str) -> frozenset[str]:
    """Return which of `int` and `float` a file hands on as a dtype: numpy and torch take the type itself, and nothing like it."""
    return frozenset(_AS_DTYPE.findall("".join(linecache.getlines(file))))


def homes(module: Any) -> list[ModuleType]:
    """Return the Python modules that hold the model's code: the user's own, and those of the model's classes outside torch."""
    classes = {c for m in module.modules() for c in type(m).__mro__}
    names = {c.__module__ for c in classes}
    found = []
    for name, home in list(sys.modules.items()):
        file = getattr(home, "__file__", None) or ""
        if isinstance(home, ModuleType) and (source_map.is_user_file(file) or (name in names and source_map.is_model_file(file))):
            found.append(home)
    return found
