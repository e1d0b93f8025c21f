"""`while` on a tensor's value, and `for` as often as a value says: as torch's while_loop, which carries the names set."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from torchferry.capture.rewrites import conditions, exits, names
from torchferry.capture.rewrites.blocks import around, contains, find
from torchferry.capture.rewrites.step_index import StepIndex
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode, new_function, own
from torchferry.foreign.torch_control_flow import WHILE_LOOP


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the `while` on a line, or around it."""
    place = around(function, line, ast.While)
    loop = place.statement
    assert isinstance(loop, ast.While)
    scope, before = names.known_at(function, place.around, loop.lineno)
    test, body, flag = _without_breaks(loop, before)
    if contains(body, ast.Break, ast.Continue, ast.Return):
        raise CannotRewrite("it has exits of a kind that cannot be carried along")
    body = names.functional(body)
    for counter in _counters(body):
        body = [StepIndex(counter).visit(s) for s in body]
    after = names.live_after(scope, place.block, place.index, place.loop is not None)
    set_inside = names.stored(body)
    made = [n for n in set_inside if n not in before and n in after and n != flag]
    carried = [n for n in set_inside if n in before and (n in after or n in names.loaded([*body, ast.Expr(test)]))]
    carried += [flag] if flag else []
    begun = _first_values(loop.lineno, copy.deepcopy(body), carried, made) if made else []
    place.replace(_emit(loop.lineno, test, body, [*carried, *made], flag, begun))


def _counters(body: list[ast.stmt]) -> list[str]:
    """Return the names that a loop's body moves on by a whole number: plain numbers, by the look of it."""
    found = []
    for statement in body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=old), right=ast.Constant(value=int()))
            ) if name == old:
                found.append(name)
    return found


def _first_values(line: int, body: list[ast.stmt], carried: list[str], made: list[str]) -> list[ast.stmt]:
    """Return code that gives the names which the first round makes a value of their shape; it is never looked at."""
    blank = ", ".join(f"torch.zeros_like(torch.as_tensor({n}))" for n in made)
    first = new_function(f"first_{line}", carried, [*body, *ast.parse(f"return ({blank},)").body])
    given = ", ".join(f"torch.as_tensor({n})" for n in carried)
    return [first, ast.parse(f"({', '.join(made)},) = first_{line}({given})").body[0]]


def is_counted(loop: ast.stmt) -> bool:
    """Say whether a `for` only counts, and fills no list: a while_loop goes round no times as well, which a scan does not."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
        return False
    fills = {n.attr for n in ast.walk(loop) if isinstance(n, ast.Attribute)} & {"append", "extend", "insert"}
    lists = any(isinstance(n, ast.AugAssign) and isinstance(n.value, ast.List) for n in ast.walk(loop))
    return isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range" and not fills and not lists


def rewrite_counted(function: FunctionNode, line: int) -> None:
    """Rewrite `for i in range(int(count))` with a counter that is a tensor."""
    place = find(function, line, is_counted)
    loop = place.statement
    assert isinstance(loop, ast.For)
    assert isinstance(loop.target, ast.Name)
    assert isinstance(loop.iter, ast.Call)
    start, stop, stride = _range(loop.iter)
    index, counter, limit = loop.target.id, f"count_{loop.lineno}", f"stop_{loop.lineno}"
    if contains(loop.body, ast.Break, ast.Continue, ast.Return) or loop.orelse:
        raise CannotRewrite("it has exits of a kind that cannot be carried along")
    scope, before = names.known_at(function, place.around, loop.lineno)
    body = [StepIndex(index).visit(s) for s in names.functional(loop.body)]
    after = names.live_after(scope, place.block, place.index, place.loop is not None)
    lost = [n for n in [*names.stored(body), index] if n not in before and n in after - names.loaded(loop.body)]
    if lost:
        raise CannotRewrite(f"`{lost[0]}` has no value before the loop")
    carried = [n for n in names.stored(body) if n in before and (n in after or n in names.loaded(body))]
    setup = ast.parse(f"{counter} = torch.as_tensor({start})\n{limit} = torch.as_tensor({stop})").body
    inside = [*ast.parse(f"{index} = {counter}").body, *body, *ast.parse(f"{counter} = {counter} + {stride}").body]
    test = ast.parse(f"{counter} {'<' if stride > 0 else '>'} {limit}", mode="eval").body
    place.replace([*setup, *_emit(loop.lineno, test, inside, [counter, *carried], None)])


def _range(call: ast.Call) -> tuple[str, str, int]:
    """Return where a range starts, where it stops, and its stride, which must be a number in the source."""
    given = [ast.unparse(a) for a in call.args]
    start, stop = ("0", given[0]) if len(given) == 1 else (given[0], given[1])
    try:
        stride = ast.literal_eval(call.args[2]) if len(given) == 3 else 1
    except ValueError as error:
        raise CannotRewrite("its stride is not written out") from error
    if not isinstance(stride, int) or not stride:
        raise CannotRewrite("its stride is no whole number")
    return start, stop, stride


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


def _emit(
    line: int, test: ast.expr, body: list[ast.stmt], carried: list[str], flag: str | None, begun: Sequence[ast.stmt] = ()
) -> list[ast.stmt]:
    condition = ast.unparse(conditions.as_tensor(copy.deepcopy(test)))
    given = ", ".join(carried)
    start = [ast.parse(f"{flag} = torch.tensor(False)").body[0]] if flag else []
    going = new_function(f"going_{line}", carried, ast.parse(f"return {condition}").body)
    nested = names.held_together(body)
    results = ", ".join(own(n, n in nested) for n in carried)
    step = new_function(f"step_{line}", carried, [*body, *ast.parse(f"return ({results},)").body])
    call = ast.parse(f"({given},) = {WHILE_LOOP}(going_{line}, step_{line}, ({results},))").body[0]
    return [*start, *begun, going, step, call]
