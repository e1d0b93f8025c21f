"""Which names a piece of code reads and sets, and the same code without changing tensors in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from torchferry.capture.rewrites.syntax_tree import TREE, CannotRewrite, FunctionNode


def stored(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names that code sets, in order of first setting, those of tensors changed in place among them."""
    names: dict[str, None] = {}
    for node in _walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id)
        elif (base := written(node)) is not None:
            names.setdefault(base)
    return list(names)


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code reads."""
    names = {n.id for n in _walk(nodes, nested=True) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return names | {
        n.target.id for n in _walk(nodes, nested=True) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }


def defined_before(function: FunctionNode, line: int) -> set[str]:
    """Return the names that are set, or are parameters, above a line of a function."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
    return {a.arg for a in named} | set(stored(_heads_above(function.body, line)))


def _heads_above(block: Sequence[ast.stmt], line: int) -> Iterable[ast.AST]:
    """Yield what runs on the way to a line: plain statements, and the heads of compound ones; not the other side of a branch."""
    for statement in block:
        if getattr(statement, "lineno", line) >= line:
            continue
        blocks = [b for b in (getattr(statement, n, None) for n in ("body", "orelse", "finalbody")) if isinstance(b, list) and b]
        yield from (child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt | ast.ExceptHandler))
        for handler in getattr(statement, "handlers", ()):
            blocks.append(handler.body)
        if isinstance(statement, ast.If) and line <= (statement.end_lineno or line):
            blocks = [b for b in blocks if b[0].lineno <= line <= (b[-1].end_lineno or line)]
        for inner in blocks:
            yield from _heads_above(inner, line)


def known_at(function: FunctionNode, around: Sequence[ast.stmt], line: int) -> tuple[FunctionNode, set[str]]:
    """Return the innermost function around a line, and the names that have a value there, its own and closed over."""
    known: set[str] = set()
    scope = function
    for statement in around:
        if isinstance(statement, ast.FunctionDef):
            known |= defined_before(scope, statement.lineno)
            scope = statement
    return scope, known | defined_before(scope, line)


def writes_in_place(nodes: Iterable[ast.AST]) -> bool:
    """Say whether code writes into tensors that it was given."""
    return any(True for _ in _spoiled(list(nodes)))  # type: ignore[arg-type]


def live_after(function: FunctionNode, block: Sequence[ast.stmt], index: int, looped: bool) -> set[str]:
    """Return the names read after a statement; anywhere in the function, if a loop may come round to it again."""
    if looped:
        return loaded(function.body)
    end = block[index].end_lineno or block[index].lineno
    later = [n for n in ast.walk(function) if isinstance(n, ast.stmt) and n is not function and getattr(n, "lineno", 0) > end]
    return loaded(later) | loaded(block[index + 1 :])


def apart(function: FunctionNode, line: int, read: set[str]) -> list[ast.stmt]:
    """Return code that gives names which a loop only reads memory of their own, where they may be views of one tensor.

    `q, k, v = x.chunk(3, -1)`: a loop's body takes no two tensors that share their memory.
    """
    views: dict[str, set[str]] = {}
    for statement in _statements_above(function.body, line):
        if isinstance(statement, ast.Assign) and _is_view(statement.value, isinstance(statement.targets[0], ast.Tuple)):
            views |= dict.fromkeys(stored(statement.targets), loaded([statement.value]))
    shared = [name for name in views if name in read]
    if len(shared) < 2 and not any(views[name] & read for name in shared):
        return []
    clone = f"{TREE}(lambda a: a.clone() if isinstance(a, torch.Tensor) else a, {{0}})"
    return [_assign(name, clone.format(name)) for name in shared]


def _statements_above(block: Sequence[ast.stmt], line: int) -> Iterable[ast.stmt]:
    """Yield the statements above a line, also those in blocks."""
    for statement in block:
        if getattr(statement, "lineno", line) < line:
            yield statement
            for inner in ("body", "orelse"):
                yield from _statements_above(getattr(statement, inner, None) or (), line)


def _is_view(value: ast.expr, several: bool) -> bool:
    """Say whether a value may share the memory of another, by the look of it: a slice, or several tensors of one call."""
    text = ast.unparse(value)
    if text.endswith((".shape", ".size()")) or ".shape[" in text:
        return False
    return isinstance(value, ast.Subscript) or (several and isinstance(value, ast.Call))


def following(first: set[str], body: Iterable[ast.stmt]) -> set[str]:
    """Return names, and those that code sets from them."""
    found = set(first)
    for statement in body:
        if isinstance(statement, ast.Assign) and found & loaded([statement.value]):
            found |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return found


def held_together(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that may stand for several tensors, by how they are set and used: `s = (h, c)`, `h, c = s`, `s["h"]`."""
    names: set[str] = set()
    for node in _walk(nodes):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() | ast.List()):
                names.add(name)
            case ast.Assign(targets=[ast.Tuple()], value=ast.Name(id=name)) | ast.Starred(value=ast.Name(id=name)):
                names.add(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant() | ast.Name()):
                names.add(name)
    return names


def written(node: ast.AST) -> str | None:
    """Return the name of the tensor that a piece of code writes into (`x[0] = 1`, `x.mul_(2)`), or None."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return _base(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return _base(node.func) if name.endswith("_") and not name.endswith("__") else None
    return None


def _base(node: ast.AST) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return None
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _walk(nodes: Iterable[ast.AST], nested: bool = False) -> Iterable[ast.AST]:
    """Yield all nodes in code, in order; not inside functions and comprehensions, whose names are their own, unless asked."""
    for node in nodes:
        yield node
        if not nested and isinstance(
            node, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp
        ):
            continue
        yield from _walk(ast.iter_child_nodes(node), nested)


def functional(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return code that makes new tensors where the given one writes into those it found."""
    for node in _walk(body):
        target = getattr(node, "target", None)
        targets = getattr(node, "targets", [target] if target is not None else [])
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and any(isinstance(t, ast.Attribute) for t in targets):
            raise CannotRewrite(f"`{ast.unparse(node)}` sets an attribute inside")
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await | ast.Try | ast.With):
            raise CannotRewrite(f"`{type(node).__name__.lower()}` inside")
    nested = held_together(body)
    copies = [_assign(n, f"{TREE}(torch.clone, {n})" if n in nested else f"{n}.clone()") for n in dict.fromkeys(_spoiled(body))]
    return [*copies, *(_AsCalls().visit(_NotInPlace().visit(s)) for s in body)]


def _spoiled(body: list[ast.stmt]) -> Iterable[str]:
    """Yield the names of tensors that code writes into and was given, rather than made itself before."""
    made: set[str] = set()
    for statement in body:
        yield from (base for node in _walk([statement]) if (base := written(node)) is not None and base not in made)
        made |= {t.id for t in getattr(statement, "targets", ()) if isinstance(t, ast.Name)}


def _assign(name: str, code: str) -> ast.stmt:
    return ast.parse(f"{name} = {code}").body[0]


class _NotInPlace(ast.NodeTransformer):
    """`x += y` as `x = x + y`."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            return node
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return ast.copy_location(ast.Assign([ast.Name(node.target.id, ast.Store())], value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node


class _AsCalls(ast.NodeTransformer):
    """`w.T` as a call: an attribute of a weight would be handed into a loop's body as a second tensor in the same memory."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in _VIEWS or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.parse(_VIEWS[node.attr].format(ast.unparse(node.value)), mode="eval").body, node)


_VIEWS = {
    "T": "torch.permute({0}, tuple(range({0}.dim()))[::-1])",
    "mT": "torch.transpose({0}, -2, -1)",
    "real": "torch.real({0})",
    "imag": "torch.imag({0})",
}
