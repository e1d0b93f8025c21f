"""A turn for each run that publishes into a folder, by a lock that ends with the process that holds it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchferry.foreign.posix import locked

PATIENCE = 5.0  # seconds to wait for another run that publishes into the same folder; it takes some milliseconds


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
