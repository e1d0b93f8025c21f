"""What a model raises when it is called as `generate` would call it: a sentence, and not our traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchferry.errors import UsageError

LONGEST = 300  # of what the model says: some print themselves


@contextmanager
def refused_in_words(model: Any, how: str) -> Iterator[None]:
    """Raise UsageError for whatever the model raises inside: `X cannot be called with ...: what it said`."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:  # the user's model may raise whatever it likes
        said = f"{type(error).__name__}: {error}"
        short = said if len(said) <= LONGEST else f"{said[:LONGEST]}..."
        raise UsageError(f"{type(model).__name__} cannot be called {how}: {short}") from error
