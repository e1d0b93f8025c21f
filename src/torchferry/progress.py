"""How far the work is: events for whoever asked to be told. Nothing is printed here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from torchferry.escape import prose
from torchferry.foreign.python_warnings import warnings_to

log = logging.getLogger("torchferry")


def _escaped(record: logging.LogRecord) -> bool:
    """Put a message, and what it names, into words that can be shown."""
    record.msg, record.args = prose(record.getMessage()), ()
    return True


log.addFilter(_escaped)


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened: a stage began or ended, a trial was run, a repair is being tried."""

    kind: Literal["begin", "end", "tick", "repair"]
    stage: str
    words: str = ""
    seconds: float = 0.0
    done: int = 0
    total: int = 0
    ok: bool = True


Listener = Callable[[Event], None]
_listener: ContextVar[Listener | None] = ContextVar("torchferry_listener", default=None)


def tell(event: Event) -> None:
    """Pass an event to the listener, if there is one, and to the log."""
    log.debug("%s %s %s", event.stage, event.kind, event.words)
    if (listener := _listener.get()) is not None:
        listener(event)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send events to `listener` for as long as the block runs."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def warnings_logged() -> Iterator[None]:
    """Send what libraries warn of to the log for as long as the block runs: what matters to the user is in the result."""

    def note(
        message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None
    ) -> None:
        log.info("%s:%d: %s: %s", filename, lineno, category.__name__, message)

    with warnings_to(note):
        yield
