"""The user's source around a line: the `if` or loop that it stands in, and where a number used there was computed."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

_VALUE_READERS = ("item", "tolist", "numpy")
_EXPORT_TESTS = {
    "is_in_onnx_export", "is_exporting", "is_compiling", "is_dynamo_compiling", "is_tracing", "is_scripting", "is_export",
}  # fmt: skip


@lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def text(file: str | None, line: int | None) -> str:
    """Return a line of a file without its indentation, or nothing."""
    if not file or not line:
        return ""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return lines[line - 1].strip() if line <= len(lines) else ""


def branch(file: str, one: int, other: int) -> tuple[int, str] | None:
    """Return the line and kind ("branch" or "loop") of the innermost `if` or loop that decides between two lines."""
    tree = _tree(file)
    if tree is None:
        return None
    found: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While | ast.If):
            kind = "branch" if isinstance(node, ast.If) else "loop"
            if any(_spans(node, line) and line != node.lineno for line in (one, other)):
                found.append((_length(node), node.lineno, kind))
        if isinstance(node, ast.IfExp | ast.ListComp | ast.GeneratorExp) and any(_spans(node, line) for line in (one, other)):
            found.append((_length(node), node.lineno, "branch" if isinstance(node, ast.IfExp) else "loop"))
    if not found:
        return _early_return(tree, one, other)
    return min(found)[1:]


def _early_return(tree: ast.Module, one: int, other: int) -> tuple[int, str] | None:
    """Return the `if` that both lines follow in one function and that leaves it or skips it, nearest to the earlier line."""
    last = min(one, other)
    function = _function(tree, last)
    if function is None:
        return None
    ifs = [n.lineno for n in ast.walk(function) if isinstance(n, ast.If) and n.lineno <= last]
    return (max(ifs), "branch") if ifs else None


def number_origin(file: str, line: int) -> int:
    """Return the line on which a Python number that this line uses was taken from a size or value; else the line itself."""
    tree = _tree(file)
    function = _function(tree, line) if tree is not None else None
    if function is None:
        return line
    here = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and _spans(s, line)]
    statement = min(here, key=_length, default=None)
    if statement is None or _reads_size(statement):
        return line
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    for _ in range(3):  # a number may pass through a few names
        for earlier in sorted(_assignments(function, line), key=lambda s: -s.lineno):
            targets = {n.id for t in _targets(earlier) for n in ast.walk(t) if isinstance(n, ast.Name)}
            if targets & names and _reads_size(earlier):
                return earlier.lineno
        more = {
            n.id
            for s in _assignments(function, line)
            if {t.id for x in _targets(s) for t in ast.walk(x) if isinstance(t, ast.Name)} & names
            for n in ast.walk(s)
            if isinstance(n, ast.Name)
        }
        if more <= names:
            break
        names |= more
    return line


def export_only(file: str, line: int, matched: int) -> int | None:
    """Return the line of an `if` on whether the model is being exported, if it decides about `line`; else None.

    It does where `line` stands in it, where its body leaves the function before `line`, and where it stands between
    `matched`, the last line whose value is still right, and `line`.
    """
    tree = _tree(file)
    function = _function(tree, line) if tree is not None else None
    tests = [n for n in ast.walk(function) if isinstance(n, ast.If | ast.IfExp) and n.lineno <= line] if function else []
    asking = [n for n in tests if _asks_for_export(n.test)]
    deciding = [n.lineno for n in asking if _spans(n, line) or _leaves(n) or matched < n.lineno]
    return max(deciding, default=None)


def _asks_for_export(test: ast.AST) -> bool:
    names = {n.attr if isinstance(n, ast.Attribute) else n.id for n in ast.walk(test) if isinstance(n, ast.Attribute | ast.Name)}
    return bool(names & _EXPORT_TESTS)


def _leaves(node: ast.If | ast.IfExp) -> bool:
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return | ast.Raise)


def conditional(file: str, line: int) -> bool:
    """Return whether the statement at a line chooses with `a if size else b`."""
    statement = _statement(file, line)
    return statement is not None and any(isinstance(n, ast.IfExp) for n in ast.walk(statement))


def takes_value(file: str, line: int) -> bool:
    """Return whether the statement at a line turns a tensor's values into Python numbers or another library's arrays."""
    statement = _statement(file, line)
    return statement is not None and _reads(statement, _VALUE_READERS, ("int", "float", "bool"))


def _statement(file: str, line: int) -> ast.stmt | None:
    tree = _tree(file)
    around = [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and _spans(s, line)] if tree is not None else []
    return min(around, key=_length, default=None)


def attribute_line(file: str, name: str) -> int | None:
    """Return the line of a method, other than `__init__`, that writes `self.<name>`: by assignment or an in-place method."""
    tree = _tree(file)
    if tree is None:
        return None
    making = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
    lines = [line for node in ast.walk(tree) if (line := _writes(node, name))]
    return min((line for line in lines if not any(_spans(f, line) for f in making)), default=None)


def _writes(node: ast.AST, name: str) -> int | None:
    """Return the line on which this node writes an attribute of that name, or None."""
    if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
        return node.lineno
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        mutates = node.func.attr.endswith("_") or node.func.attr in ("append", "update", "extend", "pop")
        return node.lineno if mutates and _mentions(node.func.value, name) else None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _mentions(node.value, name):
        return node.lineno
    return None


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(node))


def _function(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    around = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _spans(n, line)]
    return min(around, key=_length, default=None)


def _assignments(function: ast.FunctionDef, before: int) -> list[ast.stmt]:
    return [s for s in ast.walk(function) if isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign) and s.lineno < before]


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AugAssign | ast.AnnAssign) else []


def _reads_size(statement: ast.AST) -> bool:
    """Return whether a statement takes a number out of a shape, a length or a tensor's value."""
    return _reads(statement, ("shape", "size", "numel", *_VALUE_READERS), ("len", "int", "float", "bool"))


def _reads(statement: ast.AST, attributes: tuple[str, ...], functions: tuple[str, ...]) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in attributes:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            return True
    return False


def _spans(node: ast.AST, line: int) -> bool:
    return bool(getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", None) or 0))


def _length(node: ast.AST) -> int:
    return int((getattr(node, "end_lineno", None) or 0) - getattr(node, "lineno", 0))
