"""Locks on files, which end with the process that holds them; and a turn for each run that publishes into a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has none
    fcntl = None  # type: ignore[assignment]

PATIENCE = 5.0  # seconds to wait for another run that publishes into the same folder; it takes some milliseconds


def locked(handle: int) -> bool | None:
    """Whether the lock on an open file could be taken, or is somebody's; None where the file system has no locks."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except OSError:
        pass
    return None


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one run at a time publish into a folder. Where nothing can be locked, or somebody sits on the lock, go on without."""
    handle, until = None, time.monotonic() + PATIENCE
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        while locked(handle) is False and time.monotonic() < until:
            time.sleep(0.01)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
