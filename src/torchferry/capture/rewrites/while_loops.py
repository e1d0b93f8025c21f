"""`while` on a tensor's value: as torch's while_loop, which carries the names that the loop sets."""

from __future__ import annotations

import ast
import copy

from torchferry.capture.rewrites import conditions, exits, names
from torchferry.capture.rewrites.blocks import contains, find
from torchferry.capture.rewrites.source import CannotRewrite, FunctionNode


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the `while` on a line, or around it."""
    place = find(function, line, lambda s: isinstance(s, ast.While))
    loop = place.statement
    assert isinstance(loop, ast.While)
    before = names.defined_before(function, loop.lineno)
    test, body, flag = _without_breaks(loop, before)
    if contains(body, ast.Break, ast.Continue, ast.Return):
        raise CannotRewrite("it has exits of a kind that cannot be carried along")
    body = names.functional(body)
    after = names.live_after(function, place.block, place.index, place.loop is not None)
    set_inside = names.stored(body)
    lost = [n for n in set_inside if n not in before and n in after and n != flag]
    if lost:
        raise CannotRewrite(f"`{lost[0]}` has no value before the loop")
    carried = [n for n in set_inside if n in before and (n in after or n in names.loaded([*body, ast.Expr(test)]))]
    carried += [flag] if flag else []
    place.replace(_emit(loop.lineno, test, body, carried, flag))


def _without_breaks(loop: ast.While, before: set[str]) -> tuple[ast.expr, list[ast.stmt], str | None]:
    """Return the loop with its `if ...: break` turned into a flag, the flag being part of the condition."""
    body = copy.deepcopy(loop.body)
    at = [i for i, s in enumerate(body) if isinstance(s, ast.If) and len(s.body) == 1 and isinstance(s.body[0], ast.Break) and not s.orelse]
    if not at:
        return loop.test, body, None
    flag = f"stop_{loop.lineno}"
    index = at[0]
    statement = body[index]
    assert isinstance(statement, ast.If)
    test = ast.unparse(conditions.as_tensor(statement.test))
    rest = exits.masked(body[index + 1 :], flag, before | set(names.stored(body[:index]))) if body[index + 1 :] else []
    body = [*body[:index], ast.parse(f"{flag} = {test}").body[0], *rest]
    going = ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))
    always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return (going if always else ast.BoolOp(ast.And(), [loop.test, going])), body, flag


def _emit(line: int, test: ast.expr, body: list[ast.stmt], carried: list[str], flag: str | None) -> list[ast.stmt]:
    condition = ast.unparse(conditions.as_tensor(copy.deepcopy(test)))
    given = ", ".join(carried)
    start = [ast.parse(f"{flag} = torch.tensor(False)").body[0]] if flag else []
    going = ast.parse(f"def going_{line}({given}):\n    return {condition}").body[0]
    step = ast.parse(f"def step_{line}({given}):\n    pass").body[0]
    assert isinstance(step, ast.FunctionDef)
    results = ", ".join(f"torch.as_tensor({n}).clone()" for n in carried)
    step.body = [*body, ast.parse(f"def f():\n    return ({results},)").body[0].body[0]]  # type: ignore[attr-defined]
    first = ", ".join(f"torch.as_tensor({n}).clone()" for n in carried)
    call = ast.parse(f"({given},) = torch._higher_order_ops.while_loop(going_{line}, step_{line}, ({first},))").body[0]
    return [*start, going, step, call]
