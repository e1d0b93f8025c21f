"""Work that is not broken off: signals wait until it is done, and what interrupts it otherwise has it begin again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torchferry.foreign.posix import ALARM, ENDING, has_alarms

INTERRUPTING = (*ENDING, *((ALARM,) if has_alarms() else ()))
TIMES = 5  # that something may be interrupted and begin again


class Deferred:
    """The signals of a block: from `defer` on they are noted, and delivered when the block is over."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self._handlers: dict[int, Any] = {}

    def defer(self) -> None:
        """Note signals from now on instead of acting on them; in the main thread, which alone is sent any."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in INTERRUPTING:
            handler = signal.getsignal(number)
            if number not in self._handlers and callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def deliver(self) -> None:
        """Give the signals their handlers back, and send what has come meanwhile."""
        for number in sorted(self._handlers, key=lambda n: n == signal.SIGINT):  # which is put off until all others are back
            handler = self._handlers[number]
            signal.signal(number, handler)
            self._handlers.pop(number, None)
        while self.waiting:
            signal.raise_signal(self.waiting.pop())

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self.waiting:
            self.waiting.append(number)


@contextmanager
def deferred_signals() -> Iterator[Deferred]:
    """Give the block a way to put signals off; they are delivered after it."""
    signals = Deferred()
    try:
        yield signals
    finally:
        signals.deliver()


def surely(action: Callable[[], None]) -> None:
    """Carry out what may be carried out twice, again if it is interrupted; the interrupt is raised afterwards."""
    interrupted: BaseException | None = None
    for _ in range(TIMES):
        try:
            action()
            break
        except Exception:
            raise
        except BaseException as error:  # Ctrl-C, or a time limit
            interrupted = error
    if interrupted is not None:
        raise interrupted
