"""Quotients of sizes in lowest terms: torch has sympy simplify them, which takes minutes for the sizes of resized pictures."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import sympy
from torch.utils._sympy import functions

from torchferry.capture.patches.replace import replaced


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which a common factor is cancelled from a quotient of sizes, and nothing else is looked for."""
    quick = ModuleType("sympy")
    vars(quick).update(vars(sympy) | {"simplify": sympy.cancel})
    return replaced(functions, {"sympy": quick})
