"""Python source as a tree whose lines keep their numbers: where a function stands, and what its tree looks like when compiled."""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterable, Iterator
from types import CodeType

from torchferry.foreign.torch_trees import TREE_MAP

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
TREE = TREE_MAP  # goes over one tensor as well as over a tuple, list or dict of them
# what a branch or loop hands on must be a tensor of its own, with the same strides on every way
OWN = ".clone(memory_format=torch.contiguous_format)"


class CannotRewrite(Exception):
    """The code at this place is not of a shape that this rewrite can take; the text says why."""


def tree_of(file: str) -> ast.Module:
    """Return the tree of a file, each statement with a note of what it looked like."""
    lines = linecache.getlines(file)
    if not lines:
        raise CannotRewrite(f"the source of {file} is not at hand")
    tree = ast.parse("".join(lines), file)
    for node in ast.walk(tree):
        node.placed = True  # type: ignore[attr-defined]
        if isinstance(node, ast.stmt):
            node.was = ast.dump(node)  # type: ignore[attr-defined]
    return tree


def place_at(function: FunctionNode, line: int) -> None:
    """Let all code that a rewrite put into a function stand on the line it was made for."""
    for node in ast.walk(function):
        if not getattr(node, "placed", False) and isinstance(node, ast.expr | ast.stmt | ast.arg | ast.alias | ast.keyword):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
            node.placed = True  # type: ignore[union-attr]


def new_function(name: str, arguments: Iterable[str], body: Iterable[ast.stmt]) -> ast.FunctionDef:
    """Return the definition of a function."""
    taken = ast.arguments([], [ast.arg(n) for n in arguments], None, [], [], None, [])
    return ast.FunctionDef(name, taken, list(body), [], None, lineno=0)


class Swap(ast.NodeTransformer):
    """Puts another expression in the place of one node."""

    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)


def named(name: str, value: ast.expr) -> ast.stmt:
    """Return a value of the user's own with a name, standing where it stood: if it stops a capture, that is the line to mend."""
    statement = ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), value)], value), value)
    for node in (statement, *statement.targets):
        node.placed = getattr(value, "placed", False)  # type: ignore[attr-defined]
    return statement


def own(name: str, several: bool) -> str:
    """Return the code for tensors of their own, made of what a name stands for: a number, a tensor, or several together."""
    return f"{TREE}(lambda a: torch.as_tensor(a){OWN}, {name})" if several else f"torch.as_tensor({name}){OWN}"


def chosen(condition: str, one: str, other: str, several: bool) -> str:
    """Return the code for one value where a condition is true, and another where it is not; or several of each."""
    if several:
        return f"{TREE}(lambda a, b: torch.where({condition}, a, b), {one}, {other})"
    return f"torch.where({condition}, {one}, {other})"


def path_to(tree: ast.AST, line: int) -> list[ast.AST]:
    """Return the definitions around a line, outermost first: classes and functions."""
    path: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        inside = [n for n in _definitions(node) if _first_line(n) <= line <= (n.end_lineno or 0)]
        node = inside[0] if inside else None
        if node is not None:
            path.append(node)
    return path


def _definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        else:
            yield from _definitions(child)


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def function_at(tree: ast.AST, first_line: int) -> FunctionNode:
    """Return the function whose definition, decorators included, begins on a line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _first_line(node) == first_line:
            return node
    raise CannotRewrite(f"no function begins on line {first_line}; the file may have changed since it was loaded")


def compiled(function: FunctionNode, tree: ast.Module, original: CodeType) -> CodeType:
    """Return the code of a rewritten function, fit to stand in for the original: same closure, same file and lines."""
    bare = copy.deepcopy(function)
    bare.decorator_list = []
    free = [name for name in original.co_freevars if name != "__class__"]
    # a name that the new code no longer uses must stay a free variable, or the function's closure would not fit
    keep: ast.stmt = ast.If(
        ast.Constant(False), [ast.Expr(ast.Name(n, ast.Load())) for n in original.co_freevars] or [ast.Pass()], []
    )
    bare.body = [*bare.body, keep]
    inner: ast.stmt = bare
    parents = path_to(tree, function.body[0].lineno)
    owner = next((n for n in reversed(parents[:-1]) if isinstance(n, ast.ClassDef)), None) if len(parents) > 1 else None
    if owner is not None and isinstance(parents[-2], ast.ClassDef):
        inner = ast.ClassDef(owner.name, [], [], [bare], [])  # for `super()` and names with two leading underscores
    outer = ast.FunctionDef("_closure", ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, []), [inner], [], None)
    module = ast.fix_missing_locations(ast.copy_location(ast.Module([outer], []), function))
    return _find_code(
        compile(module, original.co_filename, "exec", dont_inherit=True), function.name, tuple(original.co_freevars)
    )


def _find_code(code: CodeType, name: str, free: tuple[str, ...]) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name and constant.co_freevars == free:
                return constant
            try:
                return _find_code(constant, name, free)
            except CannotRewrite:
                continue
    raise CannotRewrite(f"the rewritten `{name}` does not close over the same names")
