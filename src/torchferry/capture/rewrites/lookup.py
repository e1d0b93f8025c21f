"""`self.heads[int(index)]` with an index that is a tensor: every item is tried, and the one at the index is taken."""

from __future__ import annotations

import ast

from torchferry.capture.rewrites import conditions, names
from torchferry.capture.rewrites.blocks import always_returns, find
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode, Swap, new_function
from torchferry.foreign.torch_trees import TREE_MAP


def suits(statement: ast.stmt) -> bool:
    """Say whether a statement looks something up by a number read from a tensor, or by a name, which may stand for one."""
    picked = [n.slice for n in ast.walk(statement) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load)]
    return any(isinstance(i, ast.Name) or any(conditions.reads_number(n) for n in ast.walk(i)) for i in picked)


def reads(statement: ast.stmt) -> bool:
    """Say whether a statement looks something up by a number that it reads from a tensor itself: `list[int(t)]`."""
    found = _lookup(statement)
    return found is not None and not isinstance(found[0].slice, ast.Name)


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite a lookup in a list of modules or tensors; what follows, up to the return, is done for every item."""
    place = find(function, line, lambda s: not hasattr(s, "body") and _lookup(s) is not None)
    if place.loop is not None or place.around:
        raise CannotRewrite("it stands inside another statement")
    found = _lookup(place.statement)
    assert found is not None
    subscript, index = found
    item, line_number = f"item_{line}", place.statement.lineno
    items = ast.unparse(subscript.value)
    first: ast.stmt = Swap(subscript, ast.Name(item, ast.Load())).visit(place.statement)  # type: ignore[assignment]
    after = [first, *place.rest]
    if not always_returns(after):
        raise CannotRewrite("what follows does not return")
    body = names.functional(after)
    before = names.defined_before(function, line_number)
    operands = [n for n in names.stored(body) if n in before]
    each = new_function(f"with_item_{line}", [item, *operands], body)
    given = "".join(f", {n}" for n in operands)
    number = f"torch.as_tensor({ast.unparse(index)}).reshape(1)"
    code = f"""tried_{line} = [with_item_{line}({items}[i]{given}) for i in range(len({items}))]
chosen_{line} = torch.where({number} < 0, {number} + len(tried_{line}), {number})
return {TREE_MAP}(lambda *each: torch.stack(each).index_select(0, chosen_{line}).squeeze(0), *tried_{line})"""
    place.replace([each, *ast.parse(code).body], drop_rest=True)


def _lookup(statement: ast.stmt) -> tuple[ast.Subscript, ast.expr] | None:
    """Return `list[int(t)]`, `list[t.item()]` or `list[t]` in a statement, and the tensor."""
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Attribute | ast.Name)
        ):
            tensor = _number_of(node.slice)
            if tensor is not None:
                return node, tensor
    return None


def _number_of(index: ast.expr) -> ast.expr | None:
    if isinstance(index, ast.Call) and isinstance(index.func, ast.Name) and index.func.id == "int" and len(index.args) == 1:
        inner = index.args[0]
        return _number_of(inner) or inner
    if isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute) and index.func.attr == "item":
        return index.func.value
    return index if isinstance(index, ast.Name) else None
