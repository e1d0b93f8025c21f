"""The rewrites as a unified diff of the user's files: comments and layout of untouched lines stay as they are."""

from __future__ import annotations

import ast
import difflib
import linecache
from collections.abc import Iterable
from pathlib import Path

from torchferry.capture.rewrites import syntax_tree
from torchferry.capture.rewrites.sites import rewritten
from torchferry.records.sites import Site


def diff(chosen: Iterable[Site]) -> str:
    """Return the patch that makes the rewrites on disk, for `patch -p1` or `git apply`."""
    wanted = list(chosen)
    return "".join(_file_diff(file, [s for s in wanted if s.file == file]) for file in dict.fromkeys(s.file for s in wanted))


def _file_diff(file: str, chosen: list[Site]) -> str:
    before = linecache.getlines(file)
    after = list(before)
    for first in sorted({s.function for s in chosen}, reverse=True):  # from the end, so that line numbers above stay true
        tree = syntax_tree.tree_of(file)
        node = syntax_tree.function_at(tree, first)
        start, end = node.body[0].lineno, node.end_lineno or node.lineno
        new = rewritten(node, [s for s in chosen if s.function == first])
        after[start - 1 : end] = _block(new.body, before, _indent(before[start - 1]), start)
    name = Path(file).name
    return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))


def _block(body: list[ast.stmt], lines: list[str], indent: str, begin: int) -> list[str]:
    """Return the text of statements: the original lines, with the comments before them, where nothing changed."""
    out: list[str] = []
    done = begin
    for statement in body:
        untouched = getattr(statement, "was", None) == ast.dump(statement)
        if not hasattr(statement, "was"):
            out += [f"{indent}{text}\n" for text in ast.unparse(statement).split("\n")]
            continue
        if untouched and statement.lineno < done:  # `a = 1; b = 2`: both are in the line that is there already
            continue
        out += _comments_before(lines, statement.lineno, done)
        end = statement.end_lineno or statement.lineno
        if untouched:
            out += lines[statement.lineno - 1 : end]
        else:
            out += [f"{indent}{text}\n" for text in ast.unparse(statement).split("\n")]
        done = max(done, end + 1)
    return out


def _comments_before(lines: list[str], line: int, done: int) -> list[str]:
    """Return the comments and empty lines right above a statement."""
    first = line
    while first > done and (not lines[first - 2].strip() or lines[first - 2].lstrip().startswith("#")):
        first -= 1
    return lines[first - 1 : line - 1]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
