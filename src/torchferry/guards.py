"""Conditions on sizes as text: `sequence_length > 10`, `Eq(Mod(height, 4), 0)`; read, told and tested in one way everywhere."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

_WORDS: dict[str, Any] = {
    "Eq": lambda a, b: a == b,
    "Ne": lambda a, b: a != b,
    "Mod": lambda a, b: a % b,
    "floor": math.floor,
    "ceiling": math.ceil,
    "sqrt": math.sqrt,
    "Max": max,
    "Min": min,
    "And": lambda *a: all(a),
    "Or": lambda *a: any(a),
    "Not": lambda a: not a,
}


@lru_cache(maxsize=4096)  # a condition is tried at thousands of sizes
def symbols(text: str) -> frozenset[str]:
    """Return the names of the dims that a condition speaks of."""
    return frozenset(n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)) - _WORDS.keys()


def holds(text: str, sizes: Mapping[str, int]) -> bool | None:
    """Say whether a condition holds at these sizes; None when they do not name all its dims, or it has no value there."""
    if not symbols(text) <= sizes.keys():
        return None
    try:
        return bool(eval(_compiled(text), {"__builtins__": {}}, {**_WORDS, **sizes}))
    except (ArithmeticError, ValueError):
        return None


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<size>", "eval")


def value_of(text: str, sizes: Mapping[str, int]) -> int | None:
    """Return the number that an expression over dims stands for; None where it has none, or cannot be read."""
    try:
        if not symbols(text) <= sizes.keys():
            return None
        return int(eval(_compiled(text), {"__builtins__": {}}, {**_WORDS, **sizes}))
    except (ArithmeticError, ValueError, SyntaxError, TypeError):
        return None


def words(text: str) -> str:
    """Return a condition as a person would write it: `Eq(Mod(h, 4), 0)` as `h % 4 == 0`."""
    return re.sub(r"\s+", " ", ast.unparse(_Spoken().visit(ast.parse(text, mode="eval"))))


class _Spoken(ast.NodeTransformer):
    """Turns sympy's functions back into operators."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        compare = {"Eq": ast.Eq, "Ne": ast.NotEq}.get(name)
        if compare and len(node.args) == 2:
            return ast.Compare(node.args[0], [compare()], [node.args[1]])
        if name == "Mod" and len(node.args) == 2:
            return ast.BinOp(node.args[0], ast.Mod(), node.args[1])
        if name in ("And", "Or"):
            return ast.BoolOp(ast.And() if name == "And" else ast.Or(), node.args)
        return node
