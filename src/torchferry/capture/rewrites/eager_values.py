"""A statement's value as the eager model has it, so that a capture can go past a line that it cannot follow.

What comes out is no program of the model: it only shows what else there is in the way.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchferry.capture.rewrites import names
from torchferry.capture.rewrites.blocks import contains, find
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode

_HERE = f"__import__('sys').modules[{__name__!r}]"


class GivenValues:
    """The values that statements had in the eager model, in the order in which they were reached."""

    def __init__(self) -> None:
        self.recording = True
        self.values: dict[int, list[Any]] = defaultdict(list)
        self.read: dict[int, int] = defaultdict(int)

    def keep(self, line: int, value: Any) -> Any:
        """Take down a value, and return it."""
        self.values[line].append(_copied(value))
        return value

    def next(self, line: int) -> Any:
        """Return the value that the statement has this time; a capture that runs the code again begins anew."""
        if not self.values[line]:
            raise CannotRewrite(f"line {line} was not reached by the model itself")
        number = self.read[line] % len(self.values[line])
        self.read[line] += 1
        return _copied(self.values[line][number])


def _copied(value: Any) -> Any:
    """Return a value that later code cannot change any more; itself, where it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # nested tensors, generators, results of autograd: anything may refuse to be copied
        return value


_in_use: list[GivenValues] = []


def values() -> GivenValues:
    """Return the values that rewritten code keeps, or is given."""
    return _in_use[-1]


@contextmanager
def used_by_rewritten_code(given: GivenValues) -> Iterator[None]:
    """Let rewritten code keep its values among these, or be given them, for the block."""
    _in_use.append(given)
    try:
        yield
    finally:
        _in_use.remove(given)


def rewrite(function: FunctionNode, line: int) -> None:
    """Give the statement on a line its value: what it assigns or returns, which way it branches, or all that a loop sets."""
    place = find(function, line, lambda s: not isinstance(s, ast.FunctionDef | ast.With | ast.Try))
    statement = place.statement
    if isinstance(statement, ast.For | ast.While):
        _, before = names.known_at(function, place.around, statement.lineno)
        place.replace([_loop(statement, before, line)])
        return
    part = "test" if isinstance(statement, ast.If | ast.Assert) else "value"
    if getattr(statement, part, None) is None:
        raise CannotRewrite("it has no value")
    name = f"given_{line}"
    known = ast.parse(f"if {_HERE}.values().recording:\n    {name} = {_HERE}.values().keep({line}, None)").body[0]
    assert isinstance(known, ast.If)
    assert isinstance(known.body[0], ast.Assign)
    assert isinstance(known.body[0].value, ast.Call)
    known.body[0].value.args[1] = getattr(statement, part)
    known.orelse = ast.parse(f"{name} = {_HERE}.values().next({line})").body
    setattr(statement, part, ast.Name(name, ast.Load()))
    place.replace([known, statement])


def _loop(loop: ast.For | ast.While, before: set[str], line: int) -> ast.stmt:
    """Return a loop that is run only to see what it sets: names, and lists that it fills."""
    if contains([loop], ast.Return):
        raise CannotRewrite("it leaves the function")
    filled = {n.func.value.id for n in ast.walk(loop) if _is_method_call(n)}  # type: ignore[attr-defined]
    kept = [n for n in dict.fromkeys([*names.stored([loop]), *sorted(filled)]) if n in before]
    both = ast.parse(f"if {_HERE}.values().recording:\n    pass\nelse:\n    pass").body[0]
    assert isinstance(both, ast.If)
    given = ", ".join(kept)
    both.body = [loop, *ast.parse(f"{_HERE}.values().keep({line}, [{given}])").body]
    both.orelse = ast.parse(f"[{given}] = {_HERE}.values().next({line})").body
    return both


def _is_method_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
