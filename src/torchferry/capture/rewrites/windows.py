"""Slices of one width whose place a loop's step gives, `x[:, i:i + w]`: picked and put back by index, the last one cut short.

A slice that would reach beyond the end takes the last row again, so that all steps are alike. Where rows are computed one by
one, as in attention over chunks of queries, what comes of those rows is dropped or written twice; where they are not, other
values come out, and verification refuses the rewrite.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from torchferry.capture.rewrites import names


@dataclass(frozen=True, slots=True)
class Window:
    """The axis that a slice is taken along, where it begins, and how wide it is."""

    axis: int
    first: str
    width: str

    def index(self, tensor: str) -> str:
        """Return the code for the rows that the slice takes of a tensor."""
        return f"(torch.as_tensor({self.first}) + torch.arange({self.width})).clamp(max={tensor}.size({self.axis}) - 1)"


class Windows(ast.NodeTransformer):
    """Code in which such slices are picked with index_select, and written with index_copy."""

    def __init__(self, step: str, body: Iterable[ast.stmt]) -> None:
        self.moving = names.following({step}, body)
        self.widths: set[str] = set()  # of the slices met that begin at the step itself
        self.step = step

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`x[:, i:i + w]` where it is read."""
        self.generic_visit(node)
        window = self._window(node)
        if window is None or isinstance(node.ctx, ast.Store):
            return node
        code = f"(lambda a: a.index_select({window.axis}, {window.index('a')}))({ast.unparse(node.value)})"
        return ast.copy_location(ast.parse(code, mode="eval").body, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`y[:, i:i + w] += value` as `y[:, i:i + w] = y[:, i:i + w] + value`."""
        if not isinstance(node.target, ast.Subscript) or self._window(node.target) is None:
            self.generic_visit(node)
            return node
        read = ast.Subscript(node.target.value, node.target.slice, ast.Load())
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)), node))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`y[:, i:i + w] = value`."""
        target = node.targets[0]
        window = self._window(target) if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) else None
        self.generic_visit(node)
        if window is None:
            return node
        name: str = target.value.id  # type: ignore[attr-defined]
        rows = window.index(name)
        value = f"torch.as_tensor({ast.unparse(node.value)}).to({name}.dtype)"
        code = f"{name} = {name}.index_copy({window.axis}, {rows}, {value}.expand_as({name}.index_select({window.axis}, {rows})))"
        return ast.copy_location(ast.parse(code).body[0], node)

    def _window(self, node: ast.Subscript) -> Window | None:
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        hits = [i for i, p in enumerate(parts) if isinstance(p, ast.Slice) and p.lower is not None and self._moves(p)]
        others = [ast.unparse(p) for i, p in enumerate(parts) if i not in hits]
        if len(hits) != 1 or set(others) - {":", "..."}:
            return None
        part = parts[hits[0]]
        width = _width(part) if isinstance(part, ast.Slice) else None
        if width is None or width == "1" or self.moving & names.loaded([ast.parse(width)]):
            return None
        axis = hits[0] if "..." not in others[: hits[0]] else hits[0] - len(parts)
        first = ast.unparse(part.lower)  # type: ignore[attr-defined]
        self.widths |= {width} if first == self.step else set()
        return Window(axis, first, width)

    def _moves(self, part: ast.Slice) -> bool:
        return bool(self.moving & names.loaded([part]))


def _width(part: ast.Slice) -> str | None:
    """Return how wide a slice is, by the look of its ends: `i:i + w`, `i:min(i + w, n)`, `j * w:(j + 1) * w`."""
    first, end = part.lower, part.upper
    if isinstance(end, ast.Call) and ast.unparse(end.func) == "min" and end.args:
        end = next((a for a in end.args if isinstance(a, ast.BinOp)), None)
    if first is None or part.step is not None or not isinstance(end, ast.BinOp):
        return None
    if isinstance(end.op, ast.Add) and ast.unparse(end.left) == ast.unparse(first):
        return ast.unparse(end.right)
    match first:
        case ast.BinOp(left=one, op=ast.Mult(), right=width) if isinstance(end.op, ast.Mult):
            grown = ast.unparse(end.left) == f"{ast.unparse(one)} + 1" and ast.unparse(end.right) == ast.unparse(width)
            return ast.unparse(width) if grown else None
    return None
