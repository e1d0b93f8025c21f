"""A lid on memory for calls that may ask for any amount of it: a size of two billion among the values, for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torchferry.foreign import posix
from torchferry.memory import held_bytes

ROOM = 2 * 2**30  # bytes that such a call may take beyond what the process has
WORKER_ROOM = 8 * 2**30  # bytes for onnxruntime, beside several times the weights


@contextmanager
def little_memory() -> Iterator[None]:
    """Let no allocation in the block go far beyond what the process holds: it fails as in a full machine.

    Where the system has no such limits, or no way to tell how much the process holds, the block runs without one.
    """
    held = held_bytes()
    if held is None:
        yield
        return
    give_back = posix.limit_space(held + ROOM)  # what the user has set is never raised
    try:
        yield
    finally:
        give_back()
