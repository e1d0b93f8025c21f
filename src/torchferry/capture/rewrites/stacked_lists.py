"""Lists that a loop filled, once they are tensors stacked along the first axis."""

from __future__ import annotations

import ast


def appended(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Return the list and the value of `list.append(value)`, `list += [value]` or `list.insert(0, value)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="insert"), args=[ast.Constant(0), value])):
            return name, value
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=[value])):
            return name, value
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
            return name, value
    return None


class StackedLists(ast.NodeTransformer):
    """torch.stack and torch.cat of a list that is now one tensor, stacked along the first axis.

    `length` is what all pieces together must be long, where the last of them was cut short.
    """

    def __init__(self, lists: list[str], length: str = "") -> None:
        self.lists, self.length = lists, length

    def visit_Call(self, node: ast.Call) -> ast.AST:
        attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        tensor = self._tensor(node.args[0]) if node.args else None
        if attribute in ("stack", "cat", "concat") and tensor is not None:
            axes = [*node.args[1:], *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]
            axis = ast.literal_eval(axes[0]) if axes else 0
            if attribute == "stack":
                code = f"{tensor}.movedim(0, {axis})" if axis else tensor
            else:
                at = axis if axis >= 0 else axis - 1
                code = f"{tensor}.movedim(0, {at}).flatten({at}, {at + 1})"
                code += f".narrow({axis}, 0, {self.length})" if self.length else ""
            return ast.copy_location(ast.parse(code, mode="eval").body, node)
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`list = list[::-1]` is a tensor as well."""
        tensor = self._tensor(node.value)
        target = node.targets[0]
        if tensor is None or len(node.targets) != 1 or not isinstance(target, ast.Name):
            self.generic_visit(node)
            return node
        self.lists.append(target.id)
        return ast.copy_location(ast.parse(f"{target.id} = {tensor}").body[0], node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """`list.reverse()` turns the tensor round."""
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "reverse":
            tensor = self._tensor(call.func.value)
            if tensor is not None:
                return ast.copy_location(ast.parse(f"{tensor} = {tensor}.flip(0)").body[0], node)
        self.generic_visit(node)
        return node

    def _tensor(self, node: ast.expr) -> str | None:
        """Return the tensor that now stands for `list` or `list[::-1]`."""
        if isinstance(node, ast.Name):
            return node.id if node.id in self.lists else None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.lists:
            return f"{node.value.id}.flip(0)" if ast.unparse(node.slice) == "::-1" else None
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple", "reversed") and len(node.args) == 1:
            inner = self._tensor(node.args[0])
            return f"{inner}.flip(0)" if inner and ast.unparse(node.func) == "reversed" else inner
        return None
