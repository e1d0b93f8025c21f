"""Sizes as expressions over the names of dims: "batch_size", "past_sequence_length + sequence_length", "4*frames"."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from functools import cache
from typing import Any

from torchferry.records import Size

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def value(size: Size, sizes: Mapping[str, int]) -> int:
    """Return the number that a size stands for; KeyError when a dim is not among `sizes`."""
    if isinstance(size, int):
        return size
    return size_of(_tree(size), sizes)


def names(size: Size) -> frozenset[str]:
    """Return the dims that a size speaks of."""
    if isinstance(size, int):
        return frozenset()
    return frozenset(node.id for node in ast.walk(_tree(size)) if isinstance(node, ast.Name))


def size_of(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """Return the value of a parsed size."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return int(_OPERATORS[type(op)](size_of(left, sizes), size_of(right, sizes)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -size_of(operand, sizes)
    raise ValueError(f"cannot read the size `{ast.unparse(node)}`")


@cache
def _tree(size: str) -> ast.expr:
    return ast.parse(size, mode="eval").body
