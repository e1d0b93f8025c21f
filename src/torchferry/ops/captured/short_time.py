"""`torch.istft` with a length: torch takes the length as a plain number, which would fix every size that it is computed from."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from torchferry.ops import signals

_SIGNATURE = inspect.signature(signals.istft)


def istft(*args: Any, **kwargs: Any) -> Any:
    """Return the signal, without torch's check that windows overlap; NotImplemented where torch itself keeps sizes free."""
    given = _SIGNATURE.bind(*args, **{"self" if name == "input" else name: value for name, value in kwargs.items()}).arguments
    length = given.get("length")
    moves = any(isinstance(size, torch.SymInt) for size in (*given["self"].shape, length))
    return signals.istft(**given) if length is not None and moves else NotImplemented
