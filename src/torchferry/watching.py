"""Who is shown how far the work is when nobody said: whoever looks at a terminal or notebook, or waits for more than a moment."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from torchferry.errors import UsageError
from torchferry.progress import Event, Listener

SETTING = "TORCHFERRY_PROGRESS"  # "0": nothing is shown, "1": all of it at once; what a call says goes before it
MOMENT = 2.0  # seconds for which nobody minds silence


@contextmanager
def watching(asked: Listener | bool | None) -> Iterator[Listener | None]:
    """Give the listener that was asked for; the screen for True, none for False, and what suits the place for None."""
    if asked is False or callable(asked):
        yield asked or None
        return
    if asked not in (True, None):
        raise UsageError(f"progress is a function that is called with each Event, True or False; not {asked!r}")
    setting = os.environ.get(SETTING, "").strip().lower()
    wanted = asked or (setting not in ("0", "no", "off", "false") if setting else None)
    alone = sys.stderr is None or (wanted is None and "PYTEST_CURRENT_TEST" in os.environ)  # a test's output is the test's own
    if wanted is False or alone:
        yield None
        return
    from torchferry.cli.screen import Screen

    with Screen() as screen:
        yield screen if wanted or _is_looked_at() else Patient(screen)


class Patient:
    """A listener that keeps quiet for a moment, and then passes on all that it has heard: quick work shows nothing."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.began = time.monotonic()
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Keep an event, or pass it on with those that were kept."""
        self.heard.append(event)
        if time.monotonic() - self.began < MOMENT:
            return
        heard, self.heard = self.heard, []
        for one in heard:
            self.listener(one)


def _is_looked_at() -> bool:
    """Whether stderr is a terminal, or what a notebook shows below its cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr is not None and (sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell")
