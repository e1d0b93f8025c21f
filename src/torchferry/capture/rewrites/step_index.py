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
        if len(hits) > 1 and not any(isinstance(p, ast.Slice) or ast.unparse(p) in ("...", "None") for p in parts):
            return self._one_by_one(node, parts)
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
        if not width_one and _is_looked_up(parts[hits[0]]):
            return ast.copy_location(_gathered(ast.unparse(node.value), axis, number), node)
        return ast.copy_location(ast.parse(picked if width_one else f"{picked}.squeeze({axis})", mode="eval").body, node)

    def _one_by_one(self, node: ast.Subscript, parts: list[ast.expr]) -> ast.AST:
        """`x[t, last[t]]`, in which several numbers are tensors, one axis after the other."""
        if isinstance(node.ctx, ast.Store):
            return node
        picked = f"({ast.unparse(node.value)})"
        for part in parts:
            picked = f"{picked}.index_select(0, torch.as_tensor({ast.unparse(part)}).reshape(1)).squeeze(0)"
        return ast.copy_location(ast.parse(picked, mode="eval").body, node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`out[:, t] = value` as an index_copy into a new `out`; `mask[t, :n] = 1` changes as much of a row as it says."""
        self.generic_visit(node)
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return node
        parts = list(target.slice.elts) if isinstance(target.slice, ast.Tuple) else [target.slice]
        hits = [i for i, p in enumerate(parts) if self._uses(p) and self._number(p)[0] is not None]
        slices = [(i, p) for i, p in enumerate(parts) if isinstance(p, ast.Slice) and p.step is None and i not in hits]
        if len(hits) != 1 or len(slices) != len(parts) - 1:
            return ast.copy_location(_put(target.value.id, parts, node.value), node) if hits and _stand_together(parts) else node
        name, axis, (number, keeps) = target.value.id, hits[0], self._number(parts[hits[0]])
        place = f"torch.as_tensor({number}).reshape(1)"
        like = f"{name}.narrow({axis}, 0, 1)"
        bounded = [(at, part) for at, part in slices if part.lower is not None or part.upper is not None]
        whole = ast.unparse(_Whole({ast.unparse(part) for _, part in bounded}).visit(node.value))
        if isinstance(node.value, ast.Constant):
            value = f"torch.full_like({like}, {whole})"
        elif keeps:
            value = f"torch.as_tensor({whole}).to({name}.dtype).expand_as({like})"
        else:
            value = f"torch.as_tensor({whole}).to({name}.dtype).expand_as({like}.squeeze({axis})).unsqueeze({axis})"
        if bounded:
            within = " & ".join(_within(part, like, at) for at, part in bounded)
            value = f"torch.where({within}, {value}, {name}.index_select({axis}, {place}))"
        return ast.copy_location(ast.parse(f"{name} = {name}.index_copy({axis}, {place}, {value})").body[0], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`out[t] += value` as `out[t] = out[t] + value`."""
        if not isinstance(node.target, ast.Subscript) or not self._uses(node.target.slice):
            return self.generic_visit(node)
        read = ast.Subscript(node.target.value, node.target.slice, ast.Load())
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)), node))

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


def _stand_together(parts: list[ast.expr]) -> bool:
    """Say whether an index is of numbers, or tensors of them, side by side, and of whole axes before and after them."""
    whole = [ast.unparse(p) == ":" for p in parts]
    first, last = whole.index(False), len(whole) - 1 - whole[::-1].index(False)
    return not any(whole[first:last]) and not any(isinstance(p, ast.Slice | ast.Constant) for p in parts[first : last + 1])


def _put(name: str, parts: list[ast.expr], value: ast.expr) -> ast.stmt:
    """Return `table[:, i, j] = value`, in which several numbers are tensors, as an index_put into a new `table`."""
    index = ", ".join("None" if ast.unparse(p) == ":" else f"torch.as_tensor({ast.unparse(p)})" for p in parts)
    given = f"torch.as_tensor({ast.unparse(value)}).to({name}.dtype)"
    return ast.parse(f"{name} = torch.ops.aten.index_put.default({name}, [{index}], {given})").body[0]


def _is_looked_up(part: ast.expr) -> bool:
    """Say whether an index is read from a tensor, `table[:, ids[:, t]]`: it may be one number, or many."""
    return any(isinstance(n, ast.Call | ast.Subscript) for n in ast.walk(part))


def _gathered(value: str, axis: int, index: str) -> ast.expr:
    """Return the code that picks along an axis by an index of any rank, whose axes take the place of that one."""
    after = f", *a.shape[{axis + 1}:]" if axis != -1 else ""
    shape = f"*a.shape[:{axis}], *i.shape{after}"
    code = f"(lambda a, i: a.index_select({axis}, i.reshape(-1)).reshape({shape}))({value}, torch.as_tensor({index}))"
    return ast.parse(code, mode="eval").body


def _within(part: ast.Slice, row: str, axis: int) -> str:
    """Return the code for a mask of what a slice takes of a row along an axis, fit for the row's other axes."""
    size = f"{row}.size({axis})"
    ends = [(">=", part.lower), ("<", part.upper)]
    # a bound below zero counts from the end, as it does in Python
    bounds = [(sign, f"torch.as_tensor({ast.unparse(end)})") for sign, end in ends if end is not None]
    tests = [f"(torch.arange({size}) {sign} torch.where({b} < 0, {b} + {size}, {b}))" for sign, b in bounds]
    return f"({' & '.join(tests)}).reshape(-1, *[1] * ({row}.dim() - {axis + 1}))"


class _Whole(ast.NodeTransformer):
    """`x[t, :n]` as `x[t, :]`, where the rest of the row is left out otherwise."""

    def __init__(self, slices: set[str]) -> None:
        self.slices = slices

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        return ast.Slice() if ast.unparse(node) in self.slices else node
