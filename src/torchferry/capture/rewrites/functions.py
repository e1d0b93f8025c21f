"""The Python functions that a model may run, and new code put into them for a while."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torchferry.capture.rewrites import syntax_tree
from torchferry.whose_code import is_users, may_be_a_models


def reachable(module: Any, whose: Callable[[str], bool] = may_be_a_models) -> list[FunctionType]:
    """Return the functions, outside torch, that the model's methods may reach: theirs, by global name, or closed over."""
    found: dict[int, FunctionType] = {}
    todo: list[Any] = [attribute for c in _classes(module) for attribute in vars(c).values()]
    todo += [value for m in module.modules() for value in vars(m).values() if isinstance(value, FunctionType | MethodType)]
    while todo:
        for function in _functions_in(todo.pop()):
            if id(function) in found or not whose(function.__code__.co_filename):
                continue
            found[id(function)] = function
            todo += _named_by(function)
    return list(found.values())


def _classes(module: Any) -> set[type]:
    return {c for m in module.modules() for c in type(m).__mro__ if not c.__module__.startswith("torch.")}


def _functions_in(thing: Any) -> Iterator[FunctionType]:
    if isinstance(thing, staticmethod | classmethod | MethodType):
        thing = thing.__func__
    if isinstance(thing, property):
        thing = thing.fget
    if isinstance(thing, FunctionType):
        yield thing
        if (wrapped := getattr(thing, "__wrapped__", None)) is not None:
            yield from _functions_in(wrapped)
    elif isinstance(thing, type) and not thing.__module__.startswith(("torch", "builtins")):
        for attribute in list(vars(thing).values()):
            if isinstance(attribute, FunctionType | staticmethod | classmethod | property):
                yield from _functions_in(attribute)


def _named_by(function: FunctionType) -> list[Any]:
    names = set(function.__code__.co_names)
    named = [value for name, value in function.__globals__.items() if name in names]
    for value in [v for v in named if isinstance(v, ModuleType) and is_users(getattr(v, "__file__", "") or "")]:
        named += [attribute for name, attribute in vars(value).items() if name in names]
    for cell in function.__closure__ or ():
        try:
            named.append(cell.cell_contents)
        except ValueError:  # the cell is still empty
            continue
    return [v for v in named if isinstance(v, FunctionType | type | MethodType | staticmethod)]


def at(module: Any, file: str, line: int) -> FunctionType:
    """Return the function whose source holds a line, the smallest if several do."""
    around = [f for f in reachable(module) if f.__code__.co_filename == file and line in lines(f.__code__)]
    if not around:
        raise syntax_tree.CannotRewrite(f"no function of the model was found at {file}:{line}")
    return min(around, key=lambda f: len(lines(f.__code__)))


def lines(code: CodeType) -> range:
    """Return the lines of a function, with those of the functions in it."""
    last = max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    nested = [lines(c).stop for c in code.co_consts if isinstance(c, CodeType)]
    return range(code.co_firstlineno, max([last + 1, *nested]))


def needs_import(function: FunctionType) -> bool:
    """Say whether a function does not know torch by its name: not in its module, nor closed over."""
    return "torch" not in function.__code__.co_freevars and getattr(function.__globals__.get("torch"), "__name__", "") != "torch"


def with_import(node: syntax_tree.FunctionNode) -> None:
    """Let a function import torch itself."""
    statement = ast.copy_location(ast.Import([ast.alias("torch")]), node.body[0])
    node.body.insert(1 if ast.get_docstring(node) is not None else 0, statement)


@contextmanager
def given_code(codes: list[tuple[FunctionType, CodeType]]) -> Iterator[None]:
    """Let functions run other code for the block."""
    before = [(function, function.__code__) for function, _ in codes]
    try:
        for function, code in codes:
            function.__code__ = code
        yield
    finally:
        for function, code in reversed(before):
            function.__code__ = code
