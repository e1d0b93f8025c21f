"""Sizes that a file writes as expressions, `past + sequence`: worked out without running a word of it, for files are hostile."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 500  # characters; exporters write a few dozen
LARGEST = 1 << 62
MOST_DIGITS = 19  # of a number in 64 bits
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Div: lambda a, b: a // b if a % b == 0 else a / b,
    ast.Pow: lambda a, b: a**b if 0 <= b <= 8 else math.nan,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": math.floor, "ceiling": math.ceil, "Max": max, "Min": min, "max": max, "min": min, "Mod": operator.mod,
    "FloorDiv": operator.floordiv, "CeilToInt": math.ceil, "TruncToInt": math.trunc,
}  # fmt: skip


def whole(text: str | None) -> int | None:
    """Return a number of a file's, such as an offset, that is written out as text; None where it is no such number.

    Digits of other scripts are none: `int` takes some of them and not others, runtimes take none.
    """
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None


def evaluate(expression: str, sizes: Mapping[str, int]) -> int | None:
    """Return what a size such as `past + sequence` comes to; None where it speaks of unknown things, or is no whole number."""
    if expression in sizes:
        return sizes[expression]
    if len(expression) > LONGEST:
        return None
    try:
        found = _value(ast.parse(expression, mode="eval").body, sizes)
    except (SyntaxError, ValueError, ArithmeticError, KeyError, TypeError, RecursionError):
        return None
    return int(found) if abs(found) < LARGEST and found == int(found) else None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=int(number)):
            value = number
        case ast.Name(id=name):
            value = sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            value = OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            value = FUNCTIONS[name](*(_value(a, sizes) for a in arguments))
        case _:
            raise ValueError("no size")
    if abs(value) >= LARGEST:  # what is too large for a size is not worth multiplying on
        raise ArithmeticError
    return value
