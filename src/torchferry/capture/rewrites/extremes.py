"""A condition that picks the smaller or the larger of two numbers: `n = m if n > m else n`, `if n > m: n = m`, as min or max."""

from __future__ import annotations

import ast

from torchferry.capture.rewrites.blocks import find
from torchferry.capture.rewrites.syntax_tree import FunctionNode

_LESS, _MORE = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)


def suits(statement: ast.stmt) -> bool:
    """Say whether a statement is, or holds, such a condition."""
    if isinstance(statement, ast.If):
        return _of_branch(statement) is not None
    return not hasattr(statement, "body") and any(_of_choice(n) for n in ast.walk(statement) if isinstance(n, ast.IfExp))


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the branch or the conditional expressions on a line."""
    place = find(function, line, suits)
    if isinstance(place.statement, ast.If):
        place.replace(ast.parse(_of_branch(place.statement) or "").body)
    else:
        place.replace([_Choices().visit(place.statement)])


class _Choices(ast.NodeTransformer):
    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        found = _of_choice(node)
        return ast.copy_location(ast.parse(found, mode="eval").body, node) if found else node


def _of_branch(statement: ast.If) -> str | None:
    """Return `n = min(n, m)` for `if n > m: n = m`."""
    match statement.body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if not statement.orelse:
            found = _extreme(statement.test, ast.unparse(value), name)
            return f"{name} = {found}" if found else None
    return None


def _of_choice(node: ast.IfExp) -> str | None:
    """Return `min(n, m)` for `m if n > m else n`."""
    return _extreme(node.test, ast.unparse(node.body), ast.unparse(node.orelse))


def _extreme(test: ast.expr, then: str, other: str) -> str | None:
    """Return the call that stands for one value where a comparison of it with another is true, and for the other where not."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, (*_LESS, *_MORE)):
            sides = ast.unparse(left), ast.unparse(right)
        case _:
            return None
    if (then, other) not in (sides, sides[::-1]):
        return None
    smaller = isinstance(op, _LESS) == (then == sides[0])
    return f"{'min' if smaller else 'max'}({other}, {then})"  # of equal ones Python's takes the first, as the branch does
