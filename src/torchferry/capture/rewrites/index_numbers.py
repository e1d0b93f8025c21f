"""`i = t.item()` for a number that only says which element is meant: left a tensor, by which the same element is picked."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchferry.capture.rewrites.blocks import places
from torchferry.capture.rewrites.step_index import StepIndex
from torchferry.capture.rewrites.syntax_tree import FunctionNode


def suits(function: FunctionNode, line: int) -> bool:
    """Say whether a line picks elements by such a number."""
    scope = _scope(function, line)
    found = _indices(scope.body)
    statements = [s for s in ast.walk(scope) if isinstance(s, ast.stmt) and not hasattr(s, "body") and s.lineno == line]
    return any(isinstance(n, ast.Name) and n.id in found for s in statements for n in ast.walk(s))


def rewrite(function: FunctionNode, line: int) -> None:
    """Leave the numbers of the innermost function around a line tensors."""
    scope = _scope(function, line)
    scope.body = left_tensors(scope.body)


def left_tensors(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return code in which such numbers are tensors, each element being picked and written by index."""
    for name in _indices(body):
        body = [StepIndex(name).visit(_Unread(name).visit(s)) for s in body]
    return body


def _scope(function: FunctionNode, line: int) -> FunctionNode:
    inner = [p.statement for p in places(function.body) if isinstance(p.statement, ast.FunctionDef)]
    return next((f for f in reversed(inner) if f.lineno <= line <= (f.end_lineno or 0)), function)


def _indices(body: Sequence[ast.stmt]) -> list[str]:
    """Return the names that are set to a number read from a tensor, and are used to pick elements alone."""
    nodes = [n for s in body for n in ast.walk(s)]
    read = [n.targets[0].id for n in nodes if isinstance(n, ast.Assign) and _is_read(n)]  # type: ignore[attr-defined]
    loads = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    picks = [p.id for n in nodes for p in _picked_by(n) if isinstance(p, ast.Name)]
    return [name for name in dict.fromkeys(read) if picks.count(name) == loads.count(name) > 0]


def _picked_by(node: ast.AST) -> list[ast.expr]:
    """Return `i` and `j` of `x[i, j]`, and of `torch.as_tensor(i)`, which is the same of a number and of a tensor."""
    if isinstance(node, ast.Subscript):
        return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return node.args if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.as_tensor" else []


def _is_read(node: ast.Assign) -> bool:
    return isinstance(node.targets[0], ast.Name) and _tensor_of(node.value) is not None


def _tensor_of(value: ast.expr) -> ast.expr | None:
    """Return the tensor of `int(t)` or `t.item()`."""
    match value:
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            return _tensor_of(inner) or inner
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
            return inner
    return None


class _Unread(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if _is_read(node) and node.targets[0].id == self.name:  # type: ignore[attr-defined]
            code = f"torch.as_tensor({ast.unparse(_tensor_of(node.value))}).long()"  # type: ignore[arg-type]
            node.value = ast.copy_location(ast.parse(code, mode="eval").body, node.value)
        return node
