"""`counts = x.tolist()`, of which single numbers are read afterwards: left a tensor, of which the same numbers are read."""

from __future__ import annotations

import ast

from torchferry.capture.rewrites.blocks import find
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode

_READ_ONE_BY_ONE = {"enumerate", "zip", "len"}


def suits(statement: ast.stmt) -> bool:
    """Say whether a statement names the numbers of a tensor as a list."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Attribute(attr="tolist"), args=[])):
            return True
    return False


def rewrite(function: FunctionNode, line: int) -> None:
    """Leave the numbers a tensor; CannotRewrite if the list is used as lists alone can be: joined, repeated, handed on."""
    place = find(function, line, suits)
    statement = place.statement
    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    name = ast.unparse(statement.targets[0])
    uses = sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(function))
    if uses != sum(_reads(n, name) for n in ast.walk(function)):
        raise CannotRewrite(f"`{name}` is used as a list")
    statement.value = statement.value.func.value


def _reads(node: ast.AST, name: str) -> int:
    """Return how often a piece of code reads numbers of the list: `counts[e]`, `for n in counts`, `zip(counts, ...)`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and _is(node.value, name) and not isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.For | ast.comprehension):
        return _is(node.iter, name)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _READ_ONE_BY_ONE:
        return sum(_is(a, name) for a in node.args)
    return 0


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
