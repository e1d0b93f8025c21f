"""An end to what hangs: a block that runs longer than allowed is broken off with `TookTooLong`."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from torchferry.foreign import posix


class TookTooLong(BaseException):
    """A stage ran past its time limit. Like Ctrl-C it is no Exception, so that no `except Exception` on the way eats it."""


WAITS = 0.02  # of the time: whoever has had less of the processor waits for something else than a turn


@contextmanager
def time_limit(seconds: float, what: str, *, again: float = 0.0, of_work: bool = False) -> Iterator[None]:
    """Raise TookTooLong in the block after `seconds`; and again, at such intervals, for as long as the block goes on.

    `of_work`: not before it has had as many seconds of the processor too, lest what ends hang on how busy the machine is;
    it is asked at the intervals of `again`. A block that does nothing at all is not waited for.
    Python drops whatever is raised while it runs the callback of a weak reference, or a `__del__`: a loop that makes and
    drops tensors is there often enough for one alarm to be lost.
    What waits in native code is interrupted when it comes back to Python. Runs in onnxruntime have a limit of their own, and
    the command line watches its whole child process from outside.
    """
    words = f"{what} took longer than the time limit of {seconds:g} s"
    due = _had_its_turn(seconds) if of_work else _always
    if threading.current_thread() is not threading.main_thread() or not posix.has_alarms():
        with _interrupted(seconds, words, again, due):
            yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if due():
            raise TookTooLong(words)

    began, (outer, interval) = time.monotonic(), posix.alarm_left()
    handler = signal.getsignal(posix.ALARM)
    try:
        signal.signal(posix.ALARM, stop)
        posix.alarm(seconds, again)
        yield
    finally:
        posix.alarm(0)
        signal.signal(posix.ALARM, handler)
        if outer:  # a limit around this one, or a timer of the user's, goes on with what is left of it
            posix.alarm(max(0.001, outer - (time.monotonic() - began)), interval)


def _always() -> bool:
    return True


def _had_its_turn(seconds: float) -> Callable[[], bool]:
    """Return what tells whether this process has worked for so long by now, or does not work at all."""
    began, worked = time.monotonic(), time.process_time()

    def told() -> bool:
        work, waited = time.process_time() - worked, time.monotonic() - began
        return work >= seconds or work < WAITS * waited

    return told


@contextmanager
def _interrupted(seconds: float, words: str, again: float, due: Callable[[], bool]) -> Iterator[None]:
    """Raise TookTooLong in this thread, which gets no signals, from another one that waits."""
    kind: type[TookTooLong] = type(
        TookTooLong.__name__, (TookTooLong,), {"__init__": lambda self: TookTooLong.__init__(self, words)}
    )
    thread, raised = ctypes.c_ulong(threading.get_ident()), ctypes.py_object(kind)
    over, raising, ended = False, threading.Lock(), threading.Lock()

    def watch() -> None:
        patience = seconds
        while not ended.acquire(timeout=patience):
            with raising:
                if not over and due():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, raised)
            if not again:
                return
            patience = again

    def settle() -> None:
        if ended.locked():
            ended.release()
        while raising.locked():
            time.sleep(0)
        # One that is on its way arrives here. Recalling it, which Python allows, leaves the interpreter looking for it for
        # ever: all code runs slower from then on, and under a debugger Python 3.11 never gets past its next call.
        for _ in range(2):
            pass

    ended.acquire()
    try:
        threading.Thread(target=watch, daemon=True).start()
        yield
    finally:
        over = True  # Python raises it at calls and jumps, not at a store: from here on one may be on its way, and one come yet
        try:
            settle()
        except kind:
            with suppress(kind):
                settle()
