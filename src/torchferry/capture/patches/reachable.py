"""Which code a model can reach: the Python modules that hold it, and the closures that it reads names from.

The search starts at the classes of the model's parts and at what these hold. It goes from a function to all that its code
names: through its globals, its closure, attributes of modules and what it imports itself; and from a class to its methods, all
of the user's own classes, and those of a package's that are called by name somewhere in what was reached. It ends where
Python's, torch's or torchferry's own code begins. Code that it misses, because a name is put together at run time, is met by the
functions that Python has.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from torchferry.foreign.replaced import replaced
from torchferry.whose_code import is_users, may_be_a_models

LAYERS = "torch.nn."  # torch's Python code that is the model's as well, where it has such layers
NOT_MODELS = ("numpy", "onnx", "onnxruntime", "onnxscript", "onnx_ir", "pytest", "_pytest", "sympy", "torch", "torchferry")
OPERATIONS = ("__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__")  # called without being named
EXAMPLES = "torchferry.catalogue."  # the models in there stand for a user's own
Scope = dict[str, Any]  # the globals of a function


@dataclass(frozen=True, slots=True)
class Reached:
    """What a model's code reads names from: globals, those of torch's own layers, closures, modules that it imports itself."""

    scopes: tuple[Scope, ...]
    layers: tuple[Scope, ...]
    cells: tuple[CellType, ...]
    imports: frozenset[str]
    classes: frozenset[str]  # the names of the modules that hold the classes of the model's parts


def reached(model: torch.nn.Module) -> Reached:
    """Return what the model's forward can reach."""
    method = {text for text in vars(model).values() if isinstance(text, str)}  # stage 1 keeps the name of the user's method there
    search = _Search({"forward", *method})
    for part in model.modules():
        search.take(part)
    while search.left:
        search.follow(search.left.pop())
    classes = frozenset(c.__module__ for part in model.modules() for c in type(part).__mro__)
    layers = sorted({n for n in classes if n.startswith(LAYERS) and n in sys.modules} | {torch.nn.functional.__name__})
    return Reached(
        tuple(search.scopes.values()),
        tuple(vars(sys.modules[name]) for name in layers),
        tuple(search.cells.values()),
        frozenset(search.imports),
        classes,
    )


def homes(found: Reached) -> list[ModuleType]:
    """Return the modules whose builtins may stand for others: the user's own, and those of the model's classes."""
    files = [scope for scope in found.scopes if scope.get("__file__")]
    own = [scope for scope in files if scope["__name__"] in found.classes or is_users(scope["__file__"])]
    modules = [sys.modules.get(scope["__name__"]) for scope in own]
    return [home for home, scope in zip(modules, own, strict=True) if isinstance(home, ModuleType) and vars(home) is scope]


@contextmanager
def standing_in(found: Reached, table: Mapping[Any, Any]) -> Iterator[None]:
    """Let other things stand for some modules and functions, the keys, wherever the reached code has a name for these.

    A function that imports such a module in its own body is given it by Python; for such a model the module itself is changed.
    """
    by_identity = {id(old): new for old, new in table.items()}
    with ExitStack() as stack:
        for scope in (*found.scopes, *found.layers):
            for name, old in [(name, value) for name, value in scope.items() if id(value) in by_identity]:
                stack.callback(scope.__setitem__, name, old)
                scope[name] = by_identity[id(old)]
        for cell in found.cells:
            if cell != CellType() and id(cell.cell_contents) in by_identity:
                stack.callback(setattr, cell, "cell_contents", cell.cell_contents)
                cell.cell_contents = by_identity[id(cell.cell_contents)]
        for old, new in table.items():
            if isinstance(old, ModuleType) and old.__name__ in found.imports:
                changed = {name: value for name, value in vars(new).items() if vars(old).get(name) is not value}
                stack.enter_context(replaced(old, changed))
        yield


def like(module: ModuleType, changes: Mapping[str, Any]) -> ModuleType:
    """Return a module that has all that another one has, but for some changes."""
    other = ModuleType(module.__name__)
    vars(other).update({**vars(module), **changes})
    return other


class _Search:
    """What was found so far, and what is left to look at."""

    def __init__(self, names: set[str]) -> None:
        self.names = {*names, *OPERATIONS}  # that reached code looks up
        self.waiting: dict[str, list[Any]] = {}  # methods of packages' classes that no reached code has named so far
        self.scopes: dict[int, Scope] = {}
        self.cells: dict[int, CellType] = {}
        self.imports: set[str] = set()
        self.left: list[Any] = []
        self.seen: dict[int, Any] = {}  # kept, so that no other object gets the same identity

    def take(self, value: Any) -> None:
        """Keep a value to look at, if it may lead to code."""
        if id(value) not in self.seen and not isinstance(value, str | int | float | torch.Tensor | np.ndarray | None):
            self.seen[id(value)] = value
            self.left.append(value)

    def take_all(self, values: Iterable[Any]) -> None:
        for value in list(values):
            self.take(value)

    def follow(self, value: Any) -> None:
        """Look at a value, and take what it leads to."""
        match value:
            case FunctionType():
                self._function(value)
            case MethodType():
                self.take_all((value.__func__, value.__self__))
            case functools.partial():
                self.take_all((value.func, value.args, value.keywords))
            case staticmethod() | classmethod():
                self.take(value.__func__)
            case property():
                self.take_all((value.fget, value.fset))
            case functools.cached_property():
                self.take(value.func)
            case type():
                self._class(value)
            case dict():
                self.take_all(dict.values(value))  # not those of a subclass, which may load them
            case list() | tuple() | set() | frozenset():
                self.take_all(value)
            case ModuleType():
                pass  # what is named of it is taken where it is named
            case _:
                self._object(value)

    def _function(self, function: FunctionType) -> None:
        self.take_all((function.__defaults__, function.__kwdefaults__, getattr(function, "__wrapped__", None)))
        cells = [cell for cell in function.__closure__ or () if cell != CellType()]
        self.take_all(cell.cell_contents for cell in cells)
        known = function.__globals__
        if not _may_be_models(known):
            return
        self.scopes[id(known)] = known
        self.cells.update((id(cell), cell) for cell in cells)
        names = set(_names(function.__code__))
        for name in names - self.names:
            self.take_all(self.waiting.pop(name, ()))
        self.names |= names
        modules = [cell.cell_contents for cell in cells if isinstance(cell.cell_contents, ModuleType)]
        for name in names:
            if name in known:
                modules += [known[name]] if isinstance(known[name], ModuleType) else []
                self.take(known[name])
        imported = list(_imported(function.__code__, str(known.get("__package__") or "")))
        self.imports.update(module.__name__ for module in imported)
        for module in (*modules, *imported):
            if _may_be_models(vars(module)):
                self.take_all(vars(module)[name] for name in names & vars(module).keys())

    def _class(self, kind: type) -> None:
        for base in kind.__mro__:
            scope = _scope(base)
            if _may_be_models(scope):
                self.scopes[id(scope)] = scope
                self._members(base, is_users(scope.get("__file__") or ""))

    def _members(self, kind: type, all_of_them: bool) -> None:
        for name, value in list(vars(kind).items()):
            if all_of_them or name in self.names:
                self.take(value)
            else:
                self.waiting.setdefault(name, []).append(value)

    def _object(self, value: Any) -> None:
        kind = type(value)
        self.take_all((kind, getattr(value, "__wrapped__", None)))
        if isinstance(value, torch.nn.Module) or _may_be_models(_scope(kind)) or kind.__module__.startswith("torchferry."):
            self.take_all(getattr(value, "__dict__", {}).values())
            slots = (name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
            self.take_all(getattr(value, name, None) for name in slots)


def _scope(kind: type) -> Scope:
    """Return the globals that a class was made in; those of no module where it is not known."""
    home = sys.modules.get(kind.__module__)
    return vars(home) if isinstance(home, ModuleType) else {"__name__": kind.__module__}


def _may_be_models(scope: Scope) -> bool:
    """Whether globals may be a model's: the user's own, in a file or not, or an installed package's other than torch."""
    name, file = str(scope.get("__name__", "")), scope.get("__file__")
    first = name.partition(".")[0]
    if first in NOT_MODELS and not name.startswith(EXAMPLES):
        return False
    return may_be_a_models(file) if file else first not in sys.stdlib_module_names  # a notebook has no file


def _names(code: CodeType) -> Iterator[str]:
    """Yield all names that a function's code looks up, functions within it included."""
    for part in _codes(code):
        yield from part.co_names


def _imported(code: CodeType, package: str) -> Iterator[ModuleType]:
    """Yield the modules that a function's code imports, as far as they are loaded."""
    for part in _codes(code):
        if any(name in sys.modules or f"{package}.{name}" in sys.modules for name in part.co_names):
            for step in dis.get_instructions(part):
                if step.opname == "IMPORT_NAME":
                    found = [sys.modules.get(name) for name in (str(step.argval), f"{package}.{step.argval}")]
                    yield from (module for module in found if isinstance(module, ModuleType))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
