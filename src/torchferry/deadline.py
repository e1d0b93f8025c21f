"""An end to what hangs: a block that runs longer than allowed is broken off with `TookTooLong`."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TookTooLong(BaseException):
    """A stage ran past its time limit. Like Ctrl-C it is no Exception, so that no `except Exception` on the way eats it."""


@contextmanager
def time_limit(seconds: float, what: str, *, again: float = 0.0) -> Iterator[None]:
    """Raise TookTooLong in the block after `seconds`; and again, at such intervals, for as long as the block goes on.

    Python drops whatever is raised while it runs the callback of a weak reference, or a `__del__`: a loop that makes and
    drops tensors is there often enough for one alarm to be lost.
    Only the main thread can be interrupted from within Python; elsewhere the block runs on. Runs in onnxruntime have a
    limit of their own, and the command line watches its whole child process from outside.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"{what} took longer than the time limit of {seconds:g} s")

    began, outer = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)[0]
    handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:  # a limit around this one goes on with what is left of it
            signal.setitimer(signal.ITIMER_REAL, max(0.001, outer - (time.monotonic() - began)))
