"""torch.cond, while_loop and scan compile their bodies; many captures in one process must not run into dynamo's limit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch._dynamo import config


def patch(module: Any) -> AbstractContextManager[Any]:
    """Return a context without the limit on how often the same code may be compiled."""
    return config.patch(recompile_limit=10**6, accumulated_recompile_limit=10**6)  # type: ignore[attr-defined, no-any-return]
