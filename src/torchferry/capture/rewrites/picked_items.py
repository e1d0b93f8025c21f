"""`self.experts[e](row)` in a loop whose rounds each pick their own item: every item is tried, and the one picked is taken.

From the call of the item to the end of the round all is done once for each number, which is a plain one there.
Precondition: a round gives tensors of one shape and dtype, whichever item it picks, and an item that is not picked leaves no
trace. Of other shapes `torch.stack` makes no program, so the capture refuses them; `names.functional` takes care of
writes; what else an item may do to the rest shows when the file is compared with the model as it was written.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable

from torchferry.capture.rewrites import names
from torchferry.capture.rewrites.stacked_lists import appended
from torchferry.capture.rewrites.syntax_tree import TREE


def rewrite(loop: ast.For, before: set[str], after: set[str]) -> None:
    """Rewrite the rounds of a loop in place, if they call an item of the model's own list picked by what the loop goes over.

    `before` are the names that have a value before the loop, `after` those that are read after it.
    """
    moving = names.following(set(names.stored([loop.target])), loop.body)
    at, pick = next(((i, p) for i, s in enumerate(loop.body) if (p := _called_item(s, loop.body, moving))), (0, None))
    if pick is None:
        return
    line, head = loop.lineno, loop.body[:at]
    number, items = f"number_{line}", ast.unparse(pick.value)
    known = _Known(pick, number)
    rest, made = _with_values([known.visit(s) for s in copy.deepcopy(loop.body[at:])], line)
    rest = names.functional(rest)
    given = [*(n for n in names.stored(rest) if n in before or n in after), *made]
    operands = [n for n in names.stored(rest) if n in before | set(names.stored([loop.target, *head]))]
    code = f"""
def with_item_{line}({", ".join([number, *operands])}):
    return ({", ".join(given)},)
tried_{line} = [with_item_{line}({", ".join(["i", *operands])}) for i in range(len({items}))]
picked_{line} = torch.as_tensor({known.tensor}).reshape(1)
picked_{line} = torch.where(picked_{line} < 0, picked_{line} + len(tried_{line}), picked_{line})
({", ".join(given)},) = {TREE}(lambda *each: torch.stack(each).index_select(0, picked_{line}).squeeze(0), *tried_{line})
"""
    each, *others = ast.parse(code).body
    assert isinstance(each, ast.FunctionDef)
    each.body = [*rest, *each.body]
    loop.body = [*head, each, *others, *ast.parse("\n".join(f"{filled}.append({name})" for name, filled in made.items())).body]


def _called_item(statement: ast.stmt, body: Iterable[ast.stmt], moving: set[str]) -> ast.Subscript | None:
    """Return `self.experts[e]` in a statement that calls it, or names it to be called later."""
    called = {n.func.id for s in body for n in ast.walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Subscript() as pick) if _is_own(pick, moving):
                return pick
            case ast.Assign(targets=[ast.Name(id=n)], value=ast.Subscript() as pick) if n in called and _is_own(pick, moving):
                return pick
    return None


def _is_own(pick: ast.Subscript, moving: set[str]) -> bool:
    owner = pick.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id == "self" and bool(moving & names.loaded([pick.slice]))


def _with_values(statements: list[ast.stmt], line: int) -> tuple[list[ast.stmt], dict[str, str]]:
    """Return code in which what was appended to lists has names instead, and the list that belongs to each name."""
    made: dict[str, str] = {}
    code: list[ast.stmt] = []
    for statement in statements:
        if (pair := appended(statement)) is None:
            code.append(statement)
            continue
        name = f"made_{line}_{len(made)}"
        made[name] = pair[0]
        code.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], pair[1]), statement))
    return code, made


class _Known(ast.NodeTransformer):
    """The plain number in place of the tensor that holds it, where items are picked and where it is compared."""

    def __init__(self, pick: ast.Subscript, number: str) -> None:
        self.index, self.number = ast.unparse(pick.slice), number
        self.tensor = self.index
        match pick.slice:
            case ast.Call(func=ast.Name(id="int"), args=[inner]) | ast.Call(func=ast.Attribute(value=inner, attr="item")):
                self.tensor = ast.unparse(inner)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.slice) == self.index and ast.unparse(node.value).startswith("self."):
            node.slice = ast.Name(self.number, ast.Load())
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        node.left, *node.comparators = (self._plain(n) for n in (node.left, *node.comparators))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return self._plain(node) if ast.unparse(node) == self.index else node

    def _plain(self, node: ast.expr) -> ast.expr:
        same = ast.unparse(node) in (self.index, self.tensor)
        return ast.copy_location(ast.Name(self.number, ast.Load()), node) if same else node
