"""Conditions on sizes as text: `sequence_length > 10`, `Eq(Mod(height, 4), 0)`; read, told and tested in one way everywhere."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
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
    """Return a condition as a person would write it: `Eq(Mod(h, 4), 0)` as `h % 4 == 0`, `w + (4 + -1*n)` as `w + 4 - n`."""
    return re.sub(r"\s+", " ", ast.unparse(_Spoken().visit(ast.parse(text, mode="eval"))))


class _Spoken(ast.NodeTransformer):
    """Turns sympy's functions back into operators, and its sums into ones that subtract."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name, args = node.func.id if isinstance(node.func, ast.Name) else "", node.args
        compare = {"Eq": ast.Eq, "Ne": ast.NotEq}.get(name)
        if compare and len(args) == 2:
            return self._aside(ast.Compare(args[0], [compare()], [args[1]]))
        if name == "Mod" and len(args) == 2:
            return ast.BinOp(args[0], ast.Mod(), args[1])
        if name in ("And", "Or"):
            return ast.BoolOp(ast.And() if name == "And" else ast.Or(), args)
        if name == "Not":
            return ast.UnaryOp(ast.Not(), args[0])
        if name in ("Max", "Min", "ceiling"):
            return ast.Call(ast.Name({"ceiling": "ceil"}.get(name, name.lower()), ast.Load()), args, [])
        if name == "floor" and isinstance(args[0], ast.BinOp) and isinstance(args[0].op, ast.Div):
            return ast.BinOp(args[0].left, ast.FloorDiv(), args[0].right)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return self._aside(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult):
            return _product(node)
        return _sum(node) if isinstance(node.op, ast.Add | ast.Sub) else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _sum(node) if isinstance(node.op, ast.USub) else node

    def _aside(self, node: ast.Compare) -> ast.AST:
        """Return a comparison with the number on the right."""
        turned = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
        other = turned.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if other is None or not isinstance(node.left, ast.Constant) or isinstance(node.comparators[0], ast.Constant):
            return node
        return ast.Compare(node.comparators[0], [other()], [node.left])


def _terms(node: ast.expr, sign: int = 1) -> Iterator[tuple[int, ast.expr]]:
    """Yield what a sum is made of, each with its sign."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _terms(node.operand, -sign)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _number(node.left) == -1:
        yield from _terms(node.right, -sign)
    else:
        yield sign, node


def _sum(node: ast.expr) -> ast.expr:
    """Return a sum with what is added first, and its numbers as one, last."""
    terms = list(_terms(node))
    number = sum(sign * (_number(term) or 0) for sign, term in terms)
    others = sorted((t for t in terms if _number(t[1]) is None), key=lambda t: -t[0])
    signed = [*others, *([(1 if number > 0 else -1, ast.Constant(abs(number)))] if number or not others else [])]
    signed.sort(key=lambda t: -t[0])
    sign, made = signed[0]
    made = made if sign > 0 else ast.UnaryOp(ast.USub(), made)
    for sign, term in signed[1:]:
        made = ast.BinOp(made, ast.Add() if sign > 0 else ast.Sub(), term)
    return made


def _product(node: ast.BinOp) -> ast.expr:
    """Return a product without a factor of one, and with -1 as a sign."""
    if (factor := _number(node.left)) == -1:
        return _sum(ast.UnaryOp(ast.USub(), node.right))
    if factor == 1:
        return node.right
    return node.left if _number(node.right) == 1 else node


def _number(node: ast.expr) -> int | float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and (inner := _number(node.operand)) is not None:
        return -inner
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None
