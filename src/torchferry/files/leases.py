"""Folders for unfinished files, each with a lease: a lock that its run holds, and that ends with it, however it ends.

A process id says nothing here: containers that share a volume count theirs anew. Where a file system has no locks, what was not
touched for a week is taken to be left behind.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from torchferry.deferred import deferred_signals
from torchferry.files.door import in_words, landing
from torchferry.files.journal import PREFIX, settle
from torchferry.foreign.posix import NO_LINKS, after_fork, is_mine, locked

LEASE = "lease"
WEEK = 7 * 24 * 3600.0  # seconds; no run takes as long
_held: set[int] = set()  # the leases of this process


@contextmanager
def lease(parent: Path) -> Iterator[Path]:
    """Give a new folder in another, that no other run sweeps away; what is noted in it is settled afterwards."""
    sweep(parent)
    with deferred_signals() as signals:
        signals.defer()
        root, handle = _taken(parent)
        _held.add(handle)
        try:
            signals.deliver()
            yield root
        finally:
            try:
                signals.defer()
            finally:  # a second interrupt may have come before the line above was through
                signals.defer()
                _give_back(root, handle)


def _give_back(root: Path, handle: int) -> None:
    """Remove a folder whose run is over, unless something in it has to be settled yet."""
    over = settle(root)
    if over:
        shutil.rmtree(root, ignore_errors=True)
    _held.discard(handle)
    os.close(handle)
    if over:  # on Windows no file is removed while it is open
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def workspace(near: Path | None = None) -> Iterator[Path]:
    """Give a folder for unfinished files, on the same disk as `near`; it is gone afterwards, whatever happened."""
    with ExitStack() as stack:
        with in_words(near if near is not None else "temporary files"):
            parent = landing(near).parent if near is not None else Path(tempfile.gettempdir())
            folder = stack.enter_context(lease(parent)) / "files"
            folder.mkdir()
        yield folder


def sweep(parent: Path) -> None:
    """Remove what runs that were killed outright left behind: their leases are over."""
    with suppress(OSError):
        for left in list(parent.glob(f"{PREFIX}*")):
            with suppress(OSError):
                _sweep(left)


def _sweep(root: Path) -> None:
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or not is_mine(found.st_uid):
        return
    handle = _opened(root)
    try:
        free = locked(handle)
        if (free or (free is None and time.time() - found.st_mtime > WEEK)) and settle(root):
            shutil.rmtree(root, ignore_errors=True)
    finally:
        os.close(handle)


def _taken(parent: Path) -> tuple[Path, int]:
    """Return a new folder and its lease. One that a sweeper came upon before the lease was taken is the sweeper's."""
    while True:
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            handle = _opened(root)
        except FileNotFoundError:
            continue
        except OSError:
            shutil.rmtree(root, ignore_errors=True)
            raise
        if locked(handle) is not False and _there(root, handle):
            return root, handle
        os.close(handle)


def _opened(root: Path) -> int:
    return os.open(root / LEASE, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o600)


def _there(root: Path, handle: int) -> bool:
    """Whether a lease still lies in its folder: a sweeper may have removed it between its opening and its locking."""
    try:
        return os.path.samestat(os.stat(root / LEASE), os.fstat(handle))
    except FileNotFoundError:
        return False


def _let_go() -> None:
    """Close the leases in a process that was forked: they are its parent's, and end with that."""
    for handle in _held:
        with suppress(OSError):
            os.close(handle)
    _held.clear()


after_fork(_let_go)
