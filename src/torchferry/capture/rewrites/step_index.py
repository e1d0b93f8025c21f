"""The number of a step, as a tensor, where the loop used it as a Python index."""

from __future__ import annotations

import ast


class StepIndex(ast.NodeTransformer):
    """`x[:, t]` with a step's number that is a tensor: as index_select, which reads no value."""

    def __init__(self, index: str) -> None:
        self.index = index

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        hits = [i for i, p in enumerate(parts) if self._uses(p)]
        if len(hits) != 1 or isinstance(node.ctx, ast.Store):
            return node
        axis = (
            hits[0]
            if not any(isinstance(p, ast.Constant) and p.value in (..., None) for p in parts[: hits[0]])
            else hits[0] - len(parts)
        )
        number, width_one = self._number(parts[hits[0]])
        if number is None:
            return node
        picked = f"({ast.unparse(node.value)}).index_select({axis}, torch.as_tensor({number}).reshape(1))"
        others = [p for i, p in enumerate(parts) if i != hits[0]]
        plain = all(
            (isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None)
            or (isinstance(p, ast.Constant) and p.value is ...)
            for p in others
        )
        if not plain and not width_one:
            kept = ", ".join(ast.unparse(p) for p in others)
            return ast.copy_location(ast.parse(f"{picked}.squeeze({axis})[{kept}]", mode="eval").body, node)
        if not plain:
            return node
        return ast.copy_location(ast.parse(picked if width_one else f"{picked}.squeeze({axis})", mode="eval").body, node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`out[:, t] = value` as an index_copy into a new `out`."""
        self.generic_visit(node)
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return node
        parts = list(target.slice.elts) if isinstance(target.slice, ast.Tuple) else [target.slice]
        hits = [i for i, p in enumerate(parts) if self._uses(p)]
        if len(hits) != 1 or not all(
            isinstance(p, ast.Slice) and p.lower is p.upper is None for i, p in enumerate(parts) if i != hits[0]
        ):
            return node
        name, axis, number = target.value.id, hits[0], ast.unparse(parts[hits[0]])
        like = f"{name}.select({axis}, 0)"
        value = f"torch.as_tensor({ast.unparse(node.value)}).to({name}.dtype).expand_as({like}).unsqueeze({axis})"
        return ast.copy_location(
            ast.parse(f"{name} = {name}.index_copy({axis}, torch.as_tensor({number}).reshape(1), {value})").body[0], node
        )

    def _uses(self, part: ast.expr) -> bool:
        return any(isinstance(n, ast.Name) and n.id == self.index for n in ast.walk(part))

    def _number(self, part: ast.expr) -> tuple[str | None, bool]:
        """Return the index that a part stands for, and whether it keeps the axis: `t`, `t + 1`, or `t:t + 1`."""
        if not isinstance(part, ast.Slice):
            return ast.unparse(part), False
        bounded = part.lower is not None and part.upper is not None and part.step is None
        if bounded and ast.unparse(part.upper) == f"{ast.unparse(part.lower)} + 1":  # type: ignore[arg-type]
            return ast.unparse(part.lower), True  # type: ignore[arg-type]
        return None, False
