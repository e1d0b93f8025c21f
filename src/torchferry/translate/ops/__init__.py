"""Operators that torch.onnx lacks or gets wrong, one file a family.

A family offers `DECOMPOSITIONS` (operator -> torch function in simpler operators), `DOUBLES` and `WHOLES` (the same, for
float64 alone, and for integers and booleans alone), `TRANSLATIONS` (operator -> onnxscript function) and
`COMPLEX_TRANSLATIONS` (the same for complex arguments, which come as real pairs on a last axis of size 2).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

Table = dict[Any, Callable[..., Any]]


@cache
def _gathered(kind: str) -> Table:
    table: Table = {}
    for info in pkgutil.iter_modules(__path__, prefix=__name__ + "."):
        table.update(getattr(importlib.import_module(info.name), kind, {}))
    return table


def decompositions() -> Table:
    """Return operator -> torch function for all families."""
    return _gathered("DECOMPOSITIONS")


def doubles() -> Table:
    """Return operator -> torch function that holds for float64 alone, for all families."""
    return _gathered("DOUBLES")


def wholes() -> Table:
    """Return operator -> torch function that holds for integers and booleans alone, for all families."""
    return _gathered("WHOLES")


def translations() -> Table:
    """Return operator -> onnxscript function for all families."""
    return _gathered("TRANSLATIONS")


def complex_translations() -> Table:
    """Return operator -> onnxscript function over real pairs, for complex arguments."""
    return _gathered("COMPLEX_TRANSLATIONS")
