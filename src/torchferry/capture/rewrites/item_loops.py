"""`for e in hit: self.experts[e](...)` over numbers that values give: all items run, and those not hit leave no trace.

Precondition: the numbers come in rising order, each once, and none is negative where `_NOT_NEGATIVE` stands in what made them.
The names that are looked for make that likely; `capture/unchanged.py` shows it by running the model both ways, and refuses the
rewrite where they differ in a bit.
"""

from __future__ import annotations

import ast
import copy

from torchferry.capture.rewrites import exits, names
from torchferry.capture.rewrites.blocks import contains, find
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode

_PLACES = {"nonzero", "where", "argwhere"}  # these give each number once, in order, and none below zero
_EACH_ONCE = {"unique", *_PLACES}
_NOT_NEGATIVE = {"topk", "argmax", "argmin", "argsort", "multinomial", *_PLACES}


def suits(loop: ast.stmt, function: FunctionNode) -> bool:
    """Say whether a loop goes over numbers, each once, that pick items of the model's own lists."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    return bool(_containers(loop, loop.target.id)) and _made_by(loop.iter, function, _EACH_ONCE)


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the loop on a line as one over all items, in which what an item does counts only if it was hit."""
    place = find(function, line, lambda s: suits(s, function))
    loop = place.statement
    assert isinstance(loop, ast.For)
    assert isinstance(loop.target, ast.Name)
    if loop.orelse or contains(loop.body, ast.Break, ast.Return):
        raise CannotRewrite("it has exits of a kind that cannot be carried along")
    variable, number, hits, absent = loop.target.id, f"number_{line}", f"hits_{line}", f"absent_{line}"
    plain = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute) and loop.iter.func.attr == "tolist"
    source = loop.iter.func.value if plain else loop.iter  # type: ignore[attr-defined]
    container = _containers(loop, variable)[0]
    _, before = names.known_at(function, place.around, loop.lineno)
    body = [_Numbered(variable, number).visit(s) for s in copy.deepcopy(loop.body)]
    each = number if plain else f"torch.full({hits}.shape[1:], {number})"
    setup = ast.parse(f"{absent} = torch.logical_not(({hits} == {number}).any())\n{variable} = {each}").body
    loop.target = ast.Name(number, ast.Store())
    # Python counts from the end where a number is negative
    lowest = "" if _made_by(source, function, _NOT_NEGATIVE) else f"-len({container}), "
    loop.iter = ast.parse(f"range({lowest}len({container}))", mode="eval").body
    loop.body = [*setup, *exits.masked(body, absent, before - {variable})]
    place.replace([*ast.parse(f"{hits} = {ast.unparse(source)}").body, loop])


def _containers(loop: ast.For, variable: str) -> list[str]:
    """Return the model's own lists that the loop's variable picks from: `self.experts`."""
    picked = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load)]
    return [ast.unparse(n.value) for n in picked if _is_own(n.value) and _stands_for(n.slice, variable)]


def _is_own(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) and value.id == "self"


def _stands_for(index: ast.expr, variable: str) -> bool:
    """Say whether an index is the loop's variable: `e`, `int(e)`, `e.item()`, `e[0]`."""
    if isinstance(index, ast.Call) and len(index.args) == 1 and isinstance(index.func, ast.Name) and index.func.id == "int":
        return _stands_for(index.args[0], variable)
    if isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute) and index.func.attr == "item":
        return _stands_for(index.func.value, variable)
    if isinstance(index, ast.Subscript) and isinstance(index.slice, ast.Constant) and index.slice.value == 0:
        return _stands_for(index.value, variable)
    return isinstance(index, ast.Name) and index.id == variable


def _made_by(source: ast.expr, function: FunctionNode, methods: set[str]) -> bool:
    """Say whether one of these methods stands in an expression, or in what the names in it were set to."""
    if {n.attr for n in ast.walk(source) if isinstance(n, ast.Attribute)} & methods:
        return True
    named = {n.id for n in ast.walk(source) if isinstance(n, ast.Name)}
    made = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and named & set(names.stored(n.targets))]
    return any({a.attr for a in ast.walk(m) if isinstance(a, ast.Attribute)} & methods for m in made)


class _Numbered(ast.NodeTransformer):
    """`self.experts[e]`, `int(e)` and `e.item()` with the plain number of the round."""

    def __init__(self, variable: str, number: str) -> None:
        self.variable, self.number = variable, number

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if _is_own(node.value) and _stands_for(node.slice, self.variable):
            node.slice = ast.Name(self.number, ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Name(self.number, ast.Load()), node) if _stands_for(node, self.variable) else node
