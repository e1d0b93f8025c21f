"""Quotients of sizes in lowest terms: torch has sympy simplify them, which takes minutes for the sizes of resized pictures."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import sympy

from torchferry.foreign.torch_shapes import quotients_simplified_by


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which a common factor is cancelled from a quotient of sizes, and nothing else is looked for."""
    return quotients_simplified_by(sympy.cancel)
