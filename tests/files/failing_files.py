"""Every file operation counted, and one of them made to fail: with an error, by writing less than asked, or by a crash.

Operations that Python tells its audit hooks of are caught wherever they are made: files opened for writing, renames, links,
removals, new directories, modes. Writes and syncs are caught where they go through `os`.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal

WATCHED = {"os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
Way = Literal["error", "from then on", "short", "crash"]
CRASHED = 87


class Failing:
    """Counts operations of this thread while it is on; operation `at` fails (the first is 1; 0: none does)."""

    def __init__(self) -> None:
        self.on, self.at, self.failed = 0, 0, ""
        self.seen: list[str] = []
        self.way: Way = "error"
        self.number = errno.ENOSPC

    def run(self, work: Callable[[], object], at: int = 0, way: Way = "error", number: int = errno.ENOSPC) -> str:
        """Do some work in which one operation fails; return which that was, or nothing where it was not reached."""
        self.seen, self.at, self.way, self.number, self.failed = [], at, way, number, ""
        real = os.write, os.fsync
        os.write, os.fsync = _write(os.write), _fsync
        self.on = threading.get_ident()
        try:
            work()
        finally:
            self.on = 0
            os.write, os.fsync = real
        return self.failed

    def crashes(self, work: Callable[[], object], at: int) -> bool:
        """Do some work in a child that ends at once at an operation; whether it came so far."""
        if (child := os.fork()) == 0:
            try:
                self.run(work, at, "crash")
            finally:
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == CRASHED

    def step(self, name: str) -> bool:
        """Count an operation; whether it is to write less than asked, where it is not made to fail."""
        if self.on != threading.get_ident():
            return False
        self.seen.append(name)
        if len(self.seen) != self.at and not (self.failed and self.way == "from then on"):
            return False
        self.failed = self.failed or name
        if self.way == "crash":
            os._exit(CRASHED)
        if self.way == "short":
            return True
        raise OSError(self.number, os.strerror(self.number))


failing = Failing()


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if failing.on and (event in WATCHED or (event == "open" and isinstance(args[2], int) and args[2] & WRITING)):
        failing.step(event)


def _write(real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    return lambda handle, data: real(handle, data[: max(1, len(data) // 2)] if failing.step("os.write") else data)


def _fsync(handle: int) -> None:
    failing.step("os.fsync")  # no power is lost here: there is no need to wait for the disk


sys.addaudithook(_audit)
