"""The door to Python's warnings: what one thread hears of its own is kept from no other thread."""

from __future__ import annotations

import threading
import time
import warnings

import pytest

from torchferry.foreign.python_warnings import no_warnings, warnings_to


def test_two_threads_that_export_leave_warnings_as_they_were() -> None:
    shown, filters = warnings.showwarning, list(warnings.filters)

    def work(seconds: float) -> None:
        with warnings_to(lambda *a, **k: None):
            time.sleep(seconds)

    threads = [threading.Thread(target=work, args=(s,)) for s in (0.1, 0.2, 0.05)]
    for thread in threads:
        thread.start()
        time.sleep(0.04)
    for thread in threads:
        thread.join()
    assert warnings.showwarning is shown
    assert warnings.filters == filters


def test_another_threads_warnings_are_shown_meanwhile(recwarn: pytest.WarningsRecorder) -> None:
    mine: list[str] = []
    with warnings_to(lambda message, *a, **k: mine.append(str(message))):
        warnings.warn("of this thread", stacklevel=1)
        other = threading.Thread(target=lambda: warnings.warn("of another", stacklevel=1))
        other.start()
        other.join()
    assert mine == ["of this thread"]
    assert [str(w.message) for w in recwarn] == ["of another"]


def test_warnings_are_dropped_in_a_block_and_shown_after_it(recwarn: pytest.WarningsRecorder) -> None:
    with no_warnings():
        warnings.warn("inside", stacklevel=1)
    warnings.warn("outside", stacklevel=1)
    assert [str(w.message) for w in recwarn] == ["outside"]
