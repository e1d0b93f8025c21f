"""`int(0.5 * n)`, `math.sqrt(n)`, `np.prod(shape)`, `len(x)`: arithmetic on sizes that move stays symbolic.

Python's own functions must give back plain numbers, and so would freeze the example's size into the program. In the
modules that hold the model's code, and nowhere else, the names of these functions stand for ones that know symbolic numbers.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import math
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import GeneratorType
from typing import Any

import numpy as np
import torch

from torchferry.capture.patches.reachable import Reached, homes, like, standing_in
from torchferry.foreign.replaced import replaced
from torchferry.foreign.torch_shapes import sym_sqrt
from torchferry.ops.captured.windows import OF_NUMPY

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_AS_DTYPE = re.compile(r"(?:dtype\s*=\s*|\.(?:to|type|astype|view)\(\s*)(int|float)\b")
_BY_EXAMPLE = [False]  # no ContextVar, which dynamo cannot read in the body of a loop; one capture runs at a time


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
    _BY_EXAMPLE[0] = True
    try:
        yield
    finally:
        _BY_EXAMPLE[0] = False


def _extreme(
    plain: Callable[..., Any], symbolic: Callable[[Any, Any], Any], wins: Callable[[Any, Any], Any] = operator.gt
) -> Callable[..., Any]:
    """Return `max` or `min`, which leave sizes symbolic, and of tensors compute the one that wins as Python would pick it."""

    def pick(*args: Any, **kwargs: Any) -> Any:
        if builtins.len(args) == 1 and isinstance(args[0], GeneratorType):
            args = (list(args[0]),)
        items = args if builtins.len(args) > 1 else args[0] if args and isinstance(args[0], list | tuple) else ()
        if (
            not kwargs
            and not _BY_EXAMPLE[0]
            and any(isinstance(i, _SYMBOLS) for i in items)
            and all(isinstance(i, (*_SYMBOLS, int, float)) for i in items)
        ):
            return functools.reduce(symbolic, items)
        if not kwargs and any(isinstance(i, torch.Tensor) for i in items) and all(_is_one(i) for i in items):
            return functools.reduce(lambda best, item: torch.where(wins(item, best), item, best), items)
        return plain(*args, **kwargs)

    return pick


def _is_one(item: Any) -> bool:
    return item.numel() == 1 if isinstance(item, torch.Tensor) else isinstance(item, (*_SYMBOLS, int, float))


def _all_of(plain: Callable[..., Any], compute: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """Return a builtin that goes over a tensor's first axis, there as one operation however long that is."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and builtins.len(args) == 1 and isinstance(args[0], torch.Tensor) and args[0].dim():
            return compute(args[0])
        return plain(*args, **kwargs)

    return call


def _added_up(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.any(0) if tensor.dtype is torch.bool else tensor.sum(0, dtype=tensor.dtype)  # as `+` has it


def _round(number: Any, ndigits: int | None = None) -> Any:
    """Return `round`; of a size to so many digits, which a program has for tensors only."""
    if isinstance(number, torch.SymInt | torch.SymFloat) and ndigits is not None:
        return torch.round(torch.scalar_tensor(number, dtype=torch.float64), decimals=ndigits)
    return builtins.round(number, ndigits)


def _rounded(tensor: torch.Tensor, ndigits: int | None = None) -> torch.Tensor:
    return torch.round(tensor).long() if ndigits is None else torch.round(tensor, decimals=ndigits)


# what `math` gives for a size is a tensor here, of which Python's functions ask these; torch itself counts on `math`'s own
_TENSORS: dict[str, Any] = {
    "__floor__": lambda tensor: torch.floor(tensor).long(),
    "__ceil__": lambda tensor: torch.ceil(tensor).long(),
    "__trunc__": lambda tensor: torch.trunc(tensor).long(),
    "__round__": _rounded,
}


_NAMES: dict[str, Any] = {
    "int": Number(builtins.int, torch.sym_int),
    "float": Number(builtins.float, torch.sym_float),
    "len": symbolic_len,
    "max": _extreme(builtins.max, torch.sym_max),
    "min": _extreme(builtins.min, torch.sym_min, operator.lt),
    "round": _round,
    "sum": _all_of(builtins.sum, _added_up),
}


def _unary(
    plain: Callable[..., Any],
    symbolic: Callable[..., Any],
    of_tensor: Callable[..., Any],
    in_loops: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a function of a number which is also one of a size, and of a tensor that holds what one of a size gave.

    In the body of a loop it is dynamo that reads it: there a size passes for an int, and numpy would make an array of it.
    """

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if in_loops is not None and torch.compiler.is_dynamo_compiling() and isinstance(args[0], int | float):
            return in_loops(*args)
        if args and isinstance(args[0], _SYMBOLS):
            return symbolic(*args)
        if args and not kwargs and isinstance(args[0], torch.Tensor):
            return of_tensor(*args)
        return plain(*args, **kwargs)

    return call


def _over_sizes(plain: Callable[..., Any], join: Callable[[Any, Any], Any], start: int) -> Callable[..., Any]:
    """Return numpy's `prod` or `sum`, which of sizes is one size."""

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not kwargs and isinstance(args[0], list | tuple) and _are_sizes(args[0]):
            return functools.reduce(join, args[0], start)
        return plain(*args, **kwargs)

    return call


def _are_sizes(items: Any) -> bool:
    if torch.compiler.is_dynamo_compiling():  # to which a size is an int
        return all(isinstance(i, int) for i in items)
    return any(isinstance(i, _SYMBOLS) for i in items)


def _math() -> dict[str, Any]:
    names = ("log", "log2", "log10", "log1p", "exp", "sin", "cos", "tan", "tanh", "sinh", "cosh", "atan")
    found = {name: _unary(getattr(math, name), _in_torch(name), _in_torch(name)) for name in names}
    return {**found, "sqrt": _unary(math.sqrt, sym_sqrt, _in_torch("sqrt"))}


_BASES = {"log2": 2.0, "log10": 10.0}


def _in_torch(name: str) -> Callable[..., Any]:
    """A function that a program has for tensors only: the number becomes one, of double precision and without axes."""

    def compute(number: Any, base: float | None = None) -> Any:
        given = number.double() if isinstance(number, torch.Tensor) else torch.scalar_tensor(number, dtype=torch.float64)
        value = getattr(torch, name)(given)
        if name in _BASES:  # a runtime computes it from the natural logarithm, and may miss the whole numbers by a hair
            whole = torch.round(value)
            value = torch.where(torch.pow(_BASES[name], whole) == given, whole, value)
        return value if base is None else value / math.log(base)

    return compute


_WHOLE = {"ceil": torch.ceil, "floor": torch.floor, "rint": torch.round, "round": torch.round}


def _astype(tensor: torch.Tensor, dtype: Any) -> torch.Tensor:
    """As numpy's arrays have it: what numpy gives for a size is a tensor here."""
    return torch.as_tensor(tensor).to(getattr(torch, np.dtype(dtype).name))


def _numpy() -> dict[str, Any]:
    names = ("log", "log2", "log10", "log1p", "exp")
    rounded: dict[str, Callable[..., Any]] = {"ceil": math.ceil, "floor": math.floor, "rint": round, "round": round}
    return {
        "prod": _over_sizes(np.prod, operator.mul, 1),
        "sum": _over_sizes(np.sum, operator.add, 0),
        "sqrt": _unary(np.sqrt, sym_sqrt, torch.sqrt, math.sqrt),
        **{name: _unary(getattr(np, name), _in_torch(name), getattr(torch, name), getattr(math, name)) for name in names},
        **{
            name: _unary(getattr(np, name), lambda n, whole=whole: torch.sym_float(whole(n)), _WHOLE[name], whole)
            for name, whole in rounded.items()
        },
        "maximum": _extreme(np.maximum, torch.sym_max),
        "minimum": _extreme(np.minimum, torch.sym_min, operator.lt),
    }


# made once: dynamo remembers functions by their identity, which one that is made later may have again
_MATH, _NUMPY = _math(), _numpy()


NUMPY = like(np, {**_NUMPY, **OF_NUMPY})  # what the model's code has for numpy
_STAND_INS: dict[Any, Any] = {
    math: like(math, _MATH),
    np: NUMPY,
    **{getattr(math, name): function for name, function in _MATH.items()},
    **{getattr(np, name): function for name, function in {**_NUMPY, **OF_NUMPY}.items()},
}


@contextmanager
def patch(found: Reached) -> Iterator[None]:
    """Let the code that a model can reach see the symbolic functions for the block, and no other code."""
    with ExitStack() as stack:
        stack.enter_context(standing_in(found, _STAND_INS))
        stack.enter_context(replaced(torch.Tensor, {"astype": _astype, **_TENSORS}))
        for home in homes(found):
            kept = {*vars(home), *used_as_dtypes(home.__file__ or "")}
            own = {name: value for name, value in _NAMES.items() if name not in kept}
            stack.enter_context(replaced(home, own))
        yield


@functools.cache
def used_as_dtypes(file: str) -> frozenset[str]:
    """Return which of `int` and `float` a file hands on as a dtype: numpy and torch take the type itself, and nothing like it."""
    return frozenset(_AS_DTYPE.findall("".join(linecache.getlines(file))))
