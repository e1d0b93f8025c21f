"""A cache keyed by a size that moves: the size can be looked up, as itself, where torch would refuse to hash it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from torchferry.capture.patches.replace import replaced


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which sizes of inputs are hashable; numbers that come from values stay what they are."""
    original = torch.SymInt.__hash__

    def by_expression(self: Any) -> int:
        if not hasattr(self.node, "expr") or free_unbacked_symbols(self):
            return original(self)
        number = self.node.maybe_as_int()
        return hash(number) if number is not None else hash(("size", str(self.node.expr)))

    return replaced(torch.SymInt, {"__hash__": by_expression})
