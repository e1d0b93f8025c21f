"""`while` on a tensor's value: as torch's while_loop, which carries the names that the loop sets."""

from __future__ import annotations

import ast
import copy

from torchferry.capture.rewrites import conditions, exits, names
from torchferry.capture.rewrites.blocks import Place, contains, places
from torchferry.capture.rewrites.source import CannotRewrite, FunctionNode


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the `while` on a line, or around it."""
    place = _loop_around(function, line)
    loop = place.statement
    assert isinstance(loop, ast.While)
    scope, before = names.known_at(function, place.around, loop.lineno)
    test, body, flag = _without_breaks(loop, before)
    if contains(body, ast.Break, ast.Continue, ast.Return):
        raise CannotRewrite("it has exits of a kind that cannot be carried along")
    body = names.functional(body)
    after = names.live_after(scope, place.block, place.index, place.loop is not None)
    set_inside = names.stored(body)
    lost = [n for n in set_inside if n not in before and n in after and n != flag]
    if lost:
        raise CannotRewrite(f"`{lost[0]}` has no value before the loop")
    carried = [n for n in set_inside if n in before and (n in after or n in names.loaded([*body, ast.Expr(test)]))]
    carried += [flag] if flag else []
    place.replace(_emit(loop.lineno, test, body, carried, flag))


def _loop_around(function: FunctionNode, line: int) -> Place:
    """Return the innermost `while` that a line belongs to."""
    around = [
        p
        for p in places(function.body)
        if isinstance(p.statement, ast.While) and line in range(p.statement.lineno, (p.statement.end_lineno or 0) + 1)
    ]
    if not around:
        raise CannotRewrite(f"no loop around line {line}")
    return around[-1]


def _without_breaks(loop: ast.While, before: set[str]) -> tuple[ast.expr, list[ast.stmt], str | None]:
    """Return the loop with each `if ...: break` turned into a flag, the flag being part of the condition."""
    flag = f"stop_{loop.lineno}"
    body = _flagged(copy.deepcopy(loop.body), flag, before)
    if not any(isinstance(s, ast.If) and isinstance(s.body[-1], ast.Break) for s in loop.body):
        return loop.test, body, None
    going = ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))
    always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return (going if always else ast.BoolOp(ast.And(), [loop.test, going])), body, flag


def _flagged(body: list[ast.stmt], flag: str, before: set[str]) -> list[ast.stmt]:
    """Return a loop's body in which an exit sets the flag, and what comes after it counts only while the flag is not set."""
    for index, statement in enumerate(body):
        if (
            isinstance(statement, ast.If)
            and len(statement.body) == 1
            and isinstance(statement.body[0], ast.Break)
            and not statement.orelse
        ):
            test = ast.unparse(conditions.as_tensor(statement.test))
            rest = _flagged(body[index + 1 :], flag, before)
            set_flag = ast.parse(f"{flag} = torch.logical_or({flag}, {test})").body[0]
            return [*body[:index], set_flag, *(exits.masked(rest, flag, before) if rest else [])]
    return body


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
