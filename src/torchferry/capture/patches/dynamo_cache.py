"""torch.cond, while_loop and scan compile their bodies; many captures in one process must not run into dynamo's limit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torchferry.foreign.torch_dynamo import without_recompile_limit


def patch(module: Any) -> AbstractContextManager[Any]:
    """Return a context without the limit on how often the same code may be compiled."""
    return without_recompile_limit()
