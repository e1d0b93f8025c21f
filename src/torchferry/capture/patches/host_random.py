"""Random numbers drawn by Python or numpy inside forward: noted, with the user's line, as a capture freezes what it drew."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from torchferry.capture.patches.guard_origins import user_frame
from torchferry.capture.patches.replace import replaced
from torchferry.records import Finding, Location
from torchferry.records.findings import HostRandom

_DRAWS = (
    "random",
    "randint",
    "uniform",
    "choice",
    "choices",
    "shuffle",
    "sample",
    "gauss",
    "normal",
    "normalvariate",
    "randrange",
    "rand",
    "randn",
    "permutation",
    "random_sample",
    "binomial",
    "beta",
    "exponential",
)


@contextmanager
def noted(notes: list[Finding]) -> Iterator[None]:
    """Note each draw from Python's or numpy's generator while the block runs."""
    with ExitStack() as stack:
        for owner, words in ((random, "random"), (np.random, "np.random")):
            draws = {n: _noting(getattr(owner, n), f"{words}.{n}", notes) for n in _DRAWS if hasattr(owner, n)}
            stack.enter_context(replaced(owner, draws))
        yield


def _noting(draw: Callable[..., Any], name: str, notes: list[Finding]) -> Callable[..., Any]:
    @functools.wraps(draw)
    def call(*args: Any, **kwargs: Any) -> Any:
        frame = user_frame()
        if frame is not None:
            finding = HostRandom(name, location=Location(file=frame.filename, line=frame.lineno))
            if finding not in notes:
                notes.append(finding)
        return draw(*args, **kwargs)

    return call
