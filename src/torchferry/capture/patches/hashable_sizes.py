"""A cache keyed by a size that moves: the size can be looked up, as itself, where torch would refuse to hash it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from torchferry.foreign.replaced import replaced
from torchferry.foreign.torch_shapes import expression, has_expression, is_unbacked


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which sizes of inputs are hashable; numbers that come from values stay what they are."""
    original = torch.SymInt.__hash__

    def by_expression(self: Any) -> int:
        if not has_expression(self) or is_unbacked(self):
            return original(self)
        size = expression(self)
        return hash(int(size)) if size.is_number else hash(("size", str(size)))

    return replaced(torch.SymInt, {"__hash__": by_expression})
