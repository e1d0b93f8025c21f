"""A condition that only spares an operation which would change nothing: `if pad: x = F.pad(x, (0, pad))`, done always.

Precondition: where the condition does not hold, the operation gives back what it was given. `suits` says only that it is one that
can; that it does, `capture/unchanged.py` shows by running both forms, and refuses the rewrite where they differ in a bit.
"""

from __future__ import annotations

import ast

from torchferry.capture.rewrites.blocks import find
from torchferry.capture.rewrites.syntax_tree import FunctionNode

# with nothing to add, to cut off, to repeat or to scale, these can give back what they were given
_CALLS = frozenset({"pad", "interpolate", "upsample", "repeat", "repeat_interleave", "tile", "expand", "narrow", "roll"})


def suits(statement: ast.stmt) -> bool:
    """Say whether a statement has a condition without which the same can come out."""
    if isinstance(statement, ast.If):
        return not statement.orelse and _changes_itself(statement.body)
    return any(isinstance(n, ast.IfExp) and _always(n) is not None for n in ast.walk(statement))


def rewrite(function: FunctionNode, line: int) -> None:
    """Take out the condition of the branch or the conditional expression on a line."""
    place = find(function, line, suits)
    amounts = _Amounts(function)
    if isinstance(place.statement, ast.If):
        place.replace([amounts.visit(s) for s in place.statement.body])
    else:
        place.replace([_Always(amounts).visit(place.statement)])


def _changes_itself(body: list[ast.stmt]) -> bool:
    """Say whether code, apart from numbers it works out, sets names to a padded, cut or repeated form of themselves."""
    found = False
    for statement in body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name) and _same_but_for_size(value, target.id):
            found = True
        elif any(isinstance(n, ast.Call) for n in ast.walk(value)):
            return False
    return found


def _same_but_for_size(value: ast.expr, text: str) -> bool:
    """Say whether a value is `pad(text, ...)`, `text.repeat(...)` or `text[..., :n]`."""
    if isinstance(value, ast.Call) and _called(value) in _CALLS:
        return (bool(value.args) and ast.unparse(value.args[0]) == text) or (
            isinstance(value.func, ast.Attribute) and ast.unparse(value.func.value) == text
        )
    if isinstance(value, ast.Subscript) and ast.unparse(value.value) == text:
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return all(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and p.value is ...) for p in parts)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "contiguous":
        return _same_but_for_size(value.func.value, text)
    return False


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _always(node: ast.IfExp) -> ast.expr | None:
    """Return the side of a conditional expression that stands for both, or None."""
    for one, other in ((node.body, node.orelse), (node.orelse, node.body)):
        if _same_but_for_size(one, ast.unparse(other)):
            return one
    return None


class _Always(ast.NodeTransformer):
    def __init__(self, amounts: _Amounts) -> None:
        self.amounts = amounts

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        side = _always(node)
        return node if side is None else self.amounts.visit(side)


class _Amounts(ast.NodeTransformer):
    """`4 - n % 4` as `(4 - n % 4) % 4`: the same but where nothing is left over, which the condition had kept out."""

    def __init__(self, function: FunctionNode) -> None:
        self.left_over = {}  # the names of remainders, each with what was divided by
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Mod(), right=step)):
                    self.left_over[name] = ast.unparse(step)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.BinOp(left=whole, op=ast.Sub(), right=ast.BinOp(op=ast.Mod(), right=step)):
                divided = ast.unparse(step)
            case ast.BinOp(left=whole, op=ast.Sub(), right=ast.Name(id=name)):
                divided = self.left_over.get(name, "")
            case _:
                return node
        return ast.copy_location(ast.BinOp(node, ast.Mod(), whole), node) if ast.unparse(whole) == divided else node
