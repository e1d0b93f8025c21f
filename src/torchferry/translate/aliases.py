"""Second names of operators: torch's pass that makes type promotion explicit knows the first ones only."""

from __future__ import annotations

from typing import Any

from torchferry.foreign.torch_operators import aten, overloads

NAMES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "special_log1p": "log1p",
    "subtract": "sub",
    "true_divide": "div",
}


def _overloads() -> dict[Any, Any]:
    """Return each overload of a second name with the one of the first name that takes the same arguments."""
    table = {}
    for second, first in NAMES.items():
        here, there = getattr(aten, second), getattr(aten, first)
        for overload in set(overloads(here)) & set(overloads(there)):
            table[getattr(here, overload)] = getattr(there, overload)
    return table


FIRST_NAMES = _overloads()
