"""Finding a statement in a function, and what stands around it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode


@dataclass(slots=True)
class StatementPlace:
    """A statement, the list of statements that it stands in, and the statements around that list, outermost first."""

    block: list[ast.stmt]
    index: int
    around: tuple[ast.stmt, ...]

    @property
    def statement(self) -> ast.stmt:
        return self.block[self.index]

    @property
    def rest(self) -> list[ast.stmt]:
        """The statements after this one in its block."""
        return self.block[self.index + 1 :]

    @property
    def loop(self) -> ast.For | ast.While | None:
        """The innermost loop around the statement."""
        return next((s for s in reversed(self.around) if isinstance(s, ast.For | ast.While)), None)

    def replace(self, statements: list[ast.stmt], drop_rest: bool = False) -> None:
        """Put other statements in its place."""
        self.block[self.index : len(self.block) if drop_rest else self.index + 1] = statements


def places(block: list[ast.stmt], around: tuple[ast.stmt, ...] = ()) -> Iterator[StatementPlace]:
    """Yield every statement of a function's body, also inside the functions defined in it."""
    for index, statement in enumerate(block):
        yield StatementPlace(block, index, around)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(statement, name, None), list) and inner and isinstance(inner[0], ast.stmt):
                yield from places(inner, (*around, statement))


def find(function: FunctionNode, line: int, wanted: Callable[[ast.stmt], bool]) -> StatementPlace:
    """Return the innermost statement of a kind that has a line in its head."""
    found = [
        p for p in places(function.body) if wanted(p.statement) and _head(p.statement).start <= line < _head(p.statement).stop
    ]
    if not found:
        raise CannotRewrite(f"no such statement at line {line}")
    return found[-1]


def around(function: FunctionNode, line: int, kind: type[ast.stmt]) -> StatementPlace:
    """Return the innermost statement of a kind that a line belongs to."""
    found = [p for p in places(function.body) if isinstance(p.statement, kind)]
    found = [p for p in found if p.statement.lineno <= line <= (p.statement.end_lineno or 0)]
    if not found:
        raise CannotRewrite(f"no loop around line {line}")
    return found[-1]


def _head(statement: ast.stmt) -> range:
    """The lines of a statement, or of a compound one's first part."""
    body = getattr(statement, "body", None)
    last = statement.end_lineno or statement.lineno
    if isinstance(body, list) and body:
        last = max(statement.lineno, min(last, body[0].lineno - 1))
    return range(statement.lineno, last + 1)


def always_returns(block: list[ast.stmt]) -> bool:
    """Say whether a block ends in a return, whichever way through it is taken."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return always_returns(last.body) and always_returns(last.orelse)
    return isinstance(last, ast.Return | ast.Raise)


def contains(nodes: list[ast.stmt], *kinds: type[ast.AST]) -> bool:
    """Say whether code has a node of these kinds, outside functions defined in it."""
    outside = [n for n in nodes if not isinstance(n, ast.FunctionDef | ast.Lambda)]
    return any(isinstance(n, kinds) or contains(list(ast.iter_child_nodes(n)), *kinds) for n in outside)  # type: ignore[arg-type]
