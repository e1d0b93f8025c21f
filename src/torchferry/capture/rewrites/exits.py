"""`break`, `continue` and `return` on a tensor's value inside a loop: the rest goes on, but no longer counts."""

from __future__ import annotations

import ast
import copy

from torchferry.capture.rewrites import conditions, names
from torchferry.capture.rewrites.blocks import StatementPlace, find
from torchferry.capture.rewrites.stacked_lists import StackedLists, appended
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode, chosen


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the exit on a line of a loop's body; names that the loop sets keep their value once it is taken."""
    place = find(function, line, lambda s: isinstance(s, ast.If))
    loop = place.loop
    if loop is None or place.block is not loop.body:
        raise CannotRewrite("it is not directly in a loop")
    kind = exit_kind(place.statement)
    _, before = names.known_at(function, place.around, loop.lineno)
    if kind is ast.Continue:
        _mask_rest(place, before)
    elif isinstance(loop, ast.While):
        raise CannotRewrite("the loop itself is rewritten")
    else:
        _leave(function, place, loop, before)


def exit_kind(statement: ast.stmt) -> type[ast.stmt]:
    """Return what an `if` does: leave the loop, start its next round, or return."""
    if isinstance(statement, ast.If) and not statement.orelse and statement.body:
        last = statement.body[-1]
        if (isinstance(last, ast.Break | ast.Continue) and len(statement.body) == 1) or isinstance(last, ast.Return):
            return type(last)
        if isinstance(last, ast.Break) and all(isinstance(s, ast.Assign) for s in statement.body[:-1]):
            return ast.Break
    raise CannotRewrite("it is no plain exit")


def masked(statements: list[ast.stmt], flag: str, before: set[str]) -> list[ast.stmt]:
    """Return code that has its effect only where a flag is False."""
    statements = names.functional(statements)
    kept = [n for n in names.stored(statements) if n in before and n != flag]
    saves = [_line(f"{n}_before = {n}") for n in kept]
    nested = names.held_together(statements)
    picks = [_line(f"{n} = {chosen(flag, f'{n}_before', n, n in nested)}") for n in kept]
    return [*saves, *statements, *picks]


def _mask_rest(place: StatementPlace, before: set[str]) -> None:
    statement = place.statement
    assert isinstance(statement, ast.If)
    flag = f"skip_{statement.lineno}"
    test = conditions.as_tensor(copy.deepcopy(statement.test))
    rest = masked(place.rest, flag, before)
    place.replace([ast.Assign([ast.Name(flag, ast.Store())], test), *rest], drop_rest=True)


def _leave(function: FunctionNode, place: StatementPlace, loop: ast.For, before: set[str]) -> None:
    """A loop over a Python sequence: run all rounds, and let those after the exit have no effect."""
    statement = place.statement
    assert isinstance(statement, ast.If)
    stop, result = f"stop_{loop.lineno}", f"result_{loop.lineno}"
    test = ast.unparse(conditions.as_tensor(copy.deepcopy(statement.test)))
    returns = isinstance(statement.body[-1], ast.Return)
    lists = [] if returns else [pair[0] for s in loop.body if (pair := appended(s)) is not None]
    before = before | {_length(n) for n in lists}
    before_it, after_it = _counted(place.block[: place.index]), _counted(place.rest)
    if returns:  # what later rounds do is not looked at: the result is known by then
        value = ast.unparse(statement.body[-1].value or ast.Constant(None))  # type: ignore[attr-defined]
        pick = chosen(stop, result, value, several=True)
        changed = [n for n in names.stored(statement.body[:-1]) if n in before | set(names.stored(place.block[: place.index]))]
        middle = [_line(f"{n}_before = {n}") for n in changed]
        middle += [*statement.body[:-1], _line(f"{result} = {value} if {result} is None else {pick}")]
        middle += [_line(f"{n} = {n}_before") for n in changed]  # of use to the result alone
    else:
        before_it, after_it = (masked(statements, stop, before) for statements in (before_it, after_it))
        flag = f"leave_{statement.lineno}"
        assigns = names.functional(statement.body[:-1])
        kept = names.stored(assigns)
        middle = [
            _line(f"{flag} = torch.logical_and({test}, torch.logical_not({stop}))"),
            *[_line(f"{n}_before = {n}") for n in kept],
        ]
        middle += [*assigns, *[_line(f"{n} = torch.where({flag}, {n}, {n}_before)") for n in kept]] if kept else []
    loop.body = [*before_it, *middle, _line(f"{stop} = torch.logical_or({stop}, {test})"), *after_it]
    _around_loop(function, loop, stop, result if returns else None, lists)


def _length(name: str) -> str:
    return f"length_{name}"


def _counted(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return code that keeps the length of each list that it appends to: rounds after the exit append too, but do not count."""
    pairs = [(s, appended(s)) for s in statements]
    return [new for s, pair in pairs for new in ([s, _line(f"{_length(pair[0])} = len({pair[0]})")] if pair else [s])]


def _around_loop(function: FunctionNode, loop: ast.For, stop: str, result: str | None, lists: list[str]) -> None:
    place = find(function, loop.lineno, lambda s: s is loop)
    start = [_line(f"{stop} = torch.tensor(False)"), *([_line(f"{result} = None")] if result else [])]
    start += [_line(f"{_length(n)} = len({n})") for n in lists]
    after = [_line(f"{n} = torch.stack({n})[:torch.as_tensor({_length(n)}).item()]") for n in lists]
    rest = place.rest
    if lists:
        after += [StackedLists(lists).visit(s) for s in rest]
    if result:
        if not rest or not isinstance(rest[-1], ast.Return) or place.around:
            raise CannotRewrite("what follows the loop does not return")
        final = ast.unparse(rest[-1].value or ast.Constant(None))
        after = [*rest[:-1], _line(f"return {chosen(stop, result, final, several=True)}")]
    place.replace([*start, loop, *after], drop_rest=bool(result or lists))


def _line(code: str) -> ast.stmt:
    return ast.parse(code).body[0]
