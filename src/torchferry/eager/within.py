"""Run the flat module inside a context, so that what the context changes holds while the model is captured."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch


def within(module: torch.nn.Module, context: Callable[[torch.nn.Module], AbstractContextManager[Any]]) -> torch.nn.Module:
    """Return the same module, of which every run takes place inside a context of its own, made for the module as it is then.

    The class is replaced by a subclass rather than the module wrapped: state names and the signature of forward stay.
    """
    plain = type(module)

    def run(self: Any, tensors: Any) -> Any:
        with context(self):
            return plain.run(self, tensors)  # type: ignore[attr-defined]

    module.__class__ = type(plain.__name__, (plain,), {"run": run})
    return module
