"""A lid on memory for calls that may ask for any amount of it: a size of two billion among the values, for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM = 2 * 2**30  # bytes that such a call may take beyond what the process has
WORKER_ROOM = 8 * 2**30  # bytes for onnxruntime, beside several times the weights


@contextmanager
def little_memory() -> Iterator[None]:
    """Let no allocation in the block go far beyond what the process holds: it fails as in a full machine.

    Where the system has no such limits, or no way to tell how much the process holds, the block runs without one.
    """
    held = _held()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    lid = held + ROOM if soft == resource.RLIM_INFINITY else min(held + ROOM, soft)  # what the user has set is never raised
    resource.setrlimit(resource.RLIMIT_AS, (lid, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _held() -> int | None:
    try:
        import resource

        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
