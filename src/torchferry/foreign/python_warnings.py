"""Door to Python's warnings, which belong to the whole process: what one thread is warned of is kept from no other one.

Relies on `warnings.showwarning` being looked up at each warning. `warnings.catch_warnings` is not for threads: two that overlap
leave behind what the first has put there.
Should they move: Python 3.14 can keep `catch_warnings` to its own thread (`sys.flags.context_aware_warnings`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Show = Callable[..., None]


class _Listeners(threading.local):
    """Who is to hear of this thread's warnings, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Show] = []


class _Shared:
    """How many blocks are running in all threads, and what shows the warnings of all others meanwhile."""

    lock = threading.Lock()
    blocks = 0
    shown_by: Show = staticmethod(warnings.showwarning)


_listeners = _Listeners()


def _show(*args: Any, **kwargs: Any) -> None:
    (_listeners.stack[-1] if _listeners.stack else _Shared.shown_by)(*args, **kwargs)


@contextmanager
def warnings_to(listener: Show) -> Iterator[None]:
    """Send this thread's warnings to a function that takes what `warnings.showwarning` does; those of other threads go on."""
    with _Shared.lock:
        if not _Shared.blocks:
            _Shared.shown_by, warnings.showwarning = staticmethod(warnings.showwarning), _show
        _Shared.blocks += 1
    _listeners.stack.append(listener)
    try:
        yield
    finally:
        _listeners.stack.pop()
        with _Shared.lock:
            _Shared.blocks -= 1
            if not _Shared.blocks and warnings.showwarning is _show:
                warnings.showwarning = _Shared.shown_by


def no_warnings() -> AbstractContextManager[None]:
    """Return a context in which this thread's warnings are dropped."""
    return warnings_to(lambda *args, **kwargs: None)


def filters_back() -> Callable[[], None]:
    """Return what puts Python's filters of warnings back as they are now.

    A list of its own is what `catch_warnings` has them in, maybe of another thread's: that one is put back by who made it.
    """
    listed: Any = warnings.filters
    saved = list(listed)

    def back() -> None:
        if id(warnings.filters) == id(listed) and listed != saved:
            listed[:] = saved
            with warnings.catch_warnings():  # Python looks at filters anew when one of these begins or ends
                pass

    return back
