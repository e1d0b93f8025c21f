"""`if` on a tensor's value: as torch.cond where both sides fit, as torch.where otherwise; checks are dropped."""

from __future__ import annotations

import ast
import copy
from typing import Literal

from torchferry.capture.rewrites import conditions, names, syntax_tree
from torchferry.capture.rewrites.blocks import StatementPlace, always_returns, contains, find, places
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode, new_function, own

How = Literal["cond", "where"]
_TALK = {"print", "warn", "warning", "info", "debug", "error", "log", "exception"}


def is_validation(statement: ast.stmt) -> bool:
    """Say whether a statement only checks or talks: an assert, a print, or an `if` that does nothing but raise or talk."""
    if isinstance(statement, ast.Assert) or (isinstance(statement, ast.Expr) and _is_talk(statement)):
        return True
    return (
        isinstance(statement, ast.If) and all(_is_talk(s) for s in statement.body) and all(_is_talk(s) for s in statement.orelse)
    )


def _is_talk(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise | ast.Pass | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in _TALK


def drop_check(function: FunctionNode, line: int) -> None:
    """Take a check out: eager has passed it, and a graph cannot raise."""
    place = find(function, line, lambda s: is_validation(s) or raises_first(s))
    statement = place.statement
    if isinstance(statement, ast.If) and not is_validation(statement):
        place.replace(statement.orelse)
    else:
        place.replace([ast.Pass()] if len(place.block) == 1 else [])


def raises_first(statement: ast.stmt) -> bool:
    """Say whether an `if` raises on one side and goes on in its else."""
    return isinstance(statement, ast.If) and bool(statement.orelse) and all(_is_talk(s) for s in statement.body)


def rewrite(function: FunctionNode, line: int, how: How) -> None:
    """Rewrite the `if` on a line, and the chain of `elif` after it."""
    place = find(function, line, lambda s: isinstance(s, ast.If))
    scope, known = names.known_at(function, place.around, place.statement.lineno)
    _rewrite_at(scope, place, how, known)


def _rewrite_at(function: FunctionNode, place: StatementPlace, how: How, known: set[str]) -> None:
    """Rewrite one `if`; `known` are names that have a value in the functions around this one."""
    statement = place.statement
    assert isinstance(statement, ast.If)
    outer = conditions.split(statement.test, statement.body, statement.orelse)
    if outer is not None:
        place.replace([outer])
        for side in (outer.body, outer.orelse):
            if len(side) == 1 and isinstance(side[0], ast.If) and not conditions.is_static(side[0].test):
                _rewrite_at(function, StatementPlace(side, 0, (*place.around, outer)), how, known)
        return
    if contains([statement], ast.Break, ast.Continue):
        raise CannotRewrite("it leaves a loop")
    if contains([statement], ast.Return) or _sides_differ(statement):
        _with_rest(function, place, how, known)
    else:
        _assignments(function, place, how, known)


def _sides_differ(statement: ast.If) -> bool:
    """Say whether a side sets a name to None or to text, which a graph cannot choose between."""
    constants = [n.value for n in ast.walk(statement) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)]
    return any(c.value is None or isinstance(c.value, str) for c in constants)


def _with_rest(function: FunctionNode, place: StatementPlace, how: How, known: set[str]) -> None:
    """Give each side all that follows, up to the return."""
    statement = place.statement
    assert isinstance(statement, ast.If)
    rest = _following(function, place)
    then = [*statement.body] if always_returns(statement.body) else [*statement.body, *copy.deepcopy(rest)]
    other = [*statement.orelse] if always_returns(statement.orelse) else [*statement.orelse, *rest]
    if not (always_returns(then) and always_returns(other)):
        raise CannotRewrite("a way through it does not return")
    before = known | names.defined_before(function, statement.lineno)
    sides = [names.functional(then), names.functional(other)]
    operands = [n for n in dict.fromkeys(n for s in sides for n in names.stored(s)) if n in before]
    pairs = zip(("then", "otherwise"), sides, strict=True)
    functions = [_define(name, side, operands, statement.lineno, how) for name, side in pairs]
    place.replace([*functions, ast.Return(_choose(statement, functions, operands, how))], drop_rest=True)
    syntax_tree.place_at(functions[1], statement.lineno)
    _elif_in(functions[1], how, before)


def _following(function: FunctionNode, place: StatementPlace) -> list[ast.stmt]:
    """Return what runs after the branch until the function returns; only where no loop is around it."""
    if place.loop is not None:
        raise CannotRewrite("it stands in a loop")
    rest = list(place.rest)
    for outer in reversed(place.around):
        if outer is function or always_returns(rest):
            break
        if not isinstance(outer, ast.If):
            raise CannotRewrite("what follows is spread over several blocks")
        rest += next(p.rest for p in places(function.body) if p.statement is outer)
    return copy.deepcopy(rest)


def _assignments(function: FunctionNode, place: StatementPlace, how: How, known: set[str]) -> None:
    statement = place.statement
    assert isinstance(statement, ast.If)
    before = known | names.defined_before(function, statement.lineno)
    live = names.live_after(function, place.block, place.index, place.loop is not None)
    sides = [names.functional(statement.body), names.functional(statement.orelse)]
    set_by = [names.stored(s) for s in sides]
    results = [n for n in dict.fromkeys([*set_by[0], *set_by[1]]) if n in live]
    missing = [n for n in results for s in set_by if n not in s and n not in before]
    if missing and how == "cond":
        raise CannotRewrite(f"`{missing[0]}` is set on one side only")
    if not results:
        raise CannotRewrite("neither side sets a name that is used afterwards")
    operands = [n for n in dict.fromkeys([*set_by[0], *set_by[1]]) if n in before or n in missing]
    nested = names.held_together(s for side in sides for s in side)
    given = [own(n, n in nested) if how == "cond" else n for n in results]
    ends = [ast.parse(f"({', '.join(given)},)", mode="eval").body for _ in sides]
    functions = [
        _define(name, [*side, ast.Return(end)], operands, statement.lineno, how)
        for name, side, end in zip(("then", "otherwise"), sides, ends, strict=True)
    ]
    target = ast.Tuple([ast.Name(n, ast.Store()) for n in results], ast.Store())
    place.replace([*functions, ast.Assign([target], _choose(statement, functions, operands, how))])
    _begin_as_none(function, place, missing)
    syntax_tree.place_at(functions[1], statement.lineno)
    _elif_in(functions[1], how, before)


def _begin_as_none(function: FunctionNode, place: StatementPlace, missing: list[str]) -> None:
    """Let names that one side alone sets be None before the branch, and before the loops that it stands in.

    To read such a name before it is set is an error in eager, so that any value will do there.
    """
    outer = next((s for s in place.around if isinstance(s, ast.For | ast.While)), None)
    first = next((p for p in places(function.body) if p.statement is outer), place)
    first.block[first.index : first.index] = [ast.parse(f"{n} = None").body[0] for n in missing]


def _elif_in(function: ast.FunctionDef, how: How, known: set[str]) -> None:
    """Go on with the `elif` that now stands first in the other side."""
    for index, inner in enumerate(function.body):
        if isinstance(inner, ast.If) and not conditions.is_static(inner.test) and hasattr(inner, "was"):
            _rewrite_at(function, StatementPlace(function.body, index, ()), how, known)
            return
        if not isinstance(inner, ast.Assign) or hasattr(inner, "was"):
            return


def _define(name: str, body: list[ast.stmt], operands: list[str], line: int, how: How) -> ast.FunctionDef:
    function = new_function(f"{name}_{line}", operands, [_Owned().visit(s) for s in body] if how == "cond" else body)
    function.lineno = line
    return function


class _Owned(ast.NodeTransformer):
    """`return x` as `return x.clone()`: a branch must not hand out what it was given."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Return(self._own(node.value)), node) if node.value is not None else node

    def _own(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Tuple | ast.List):
            return type(value)([self._own(v) for v in value.elts], ast.Load())
        if isinstance(value, ast.Dict):
            return ast.Dict(value.keys, [self._own(v) for v in value.values])
        if isinstance(value, ast.Name | ast.Subscript | ast.Attribute) or (isinstance(value, ast.Call) and _is_view(value)):
            return ast.Call(ast.Attribute(value, "clone", ast.Load()), [], [])
        return value

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


_VIEWS = frozenset({
    "transpose", "view", "reshape", "permute", "squeeze", "unsqueeze", "flatten", "expand", "expand_as", "t", "narrow", "select",
    "contiguous", "to", "float", "type_as", "detach", "view_as", "movedim", "swapaxes", "unflatten", "diagonal",
})  # fmt: skip


def _is_view(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _VIEWS


def _choose(statement: ast.If, functions: list[ast.FunctionDef], operands: list[str], how: How) -> ast.expr:
    """Return the expression that picks a side: torch.cond, or both sides and torch.where."""
    test = ast.unparse(conditions.as_tensor(copy.deepcopy(statement.test)))
    then, other = (f.name for f in functions)
    given = ", ".join(operands)
    if how == "cond":
        tail = f"({given},)" if operands else "()"
        return ast.parse(f"torch.cond({test}, {then}, {other}, {tail})", mode="eval").body
    # a name may be None before it is set: then the side that sets it stands for both
    pick = f"lambda a, b: a if b is None else b if a is None else torch.where({test}, a, b)"
    return ast.parse(f"{syntax_tree.TREE}({pick}, {then}({given}), {other}({given}))", mode="eval").body


class _Ternary(ast.NodeTransformer):
    def __init__(self, how: How) -> None:
        self.how, self.count = how, 0

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if conditions.is_static(node.test):
            return node
        self.count += 1
        test = ast.unparse(conditions.as_tensor(copy.deepcopy(node.test)))
        body, orelse = ast.unparse(node.body), ast.unparse(node.orelse)
        if self.how == "where":
            code = f"torch.where({test}, {body}, {orelse})"
        else:
            code = f"torch.cond({test}, lambda: torch.as_tensor({body}).clone(), lambda: torch.as_tensor({orelse}).clone(), ())"
        return ast.copy_location(ast.parse(code, mode="eval").body, node)


def rewrite_ternary(function: FunctionNode, line: int, how: How) -> None:
    """Rewrite `a if condition else b` on a line."""
    place = find(
        function,
        line,
        lambda s: any(isinstance(n, ast.IfExp) for n in ast.walk(s)) and not isinstance(s, ast.If | ast.For | ast.While),
    )
    ternary = _Ternary(how)
    new = ternary.visit(place.statement)
    if not ternary.count:
        raise CannotRewrite("its condition is no tensor")
    place.replace([new])


class _Truth(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not asks_truth(node):
            return node
        return ast.copy_location(conditions.as_tensor(node.args[0]), node)


def asks_truth(node: ast.AST) -> bool:
    """Say whether code is `bool(x)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool" and len(node.args) == 1


def rewrite_truth(function: FunctionNode, line: int) -> None:
    """Leave `bool(x)` a tensor, so that Python asks for its value where it decides something."""
    place = find(function, line, lambda s: any(asks_truth(n) for n in ast.walk(s)))
    place.replace([_Truth().visit(place.statement)])
