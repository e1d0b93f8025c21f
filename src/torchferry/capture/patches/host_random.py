"""Random numbers drawn by Python or numpy inside forward: noted, with the user's line, as a capture freezes what it drew."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from torchferry.capture.patches import numbers
from torchferry.capture.patches.guard_origins import user_frame
from torchferry.capture.patches.reachable import Reached, like, standing_in
from torchferry.foreign.replaced import replaced
from torchferry.records import Finding, Location
from torchferry.records.findings import HostRandom

_DRAWS = (
    "random", "randint", "uniform", "choice", "choices", "shuffle", "sample", "gauss", "normal", "normalvariate", "randrange",
    "rand", "randn", "permutation", "random_sample", "binomial", "beta", "exponential",
)  # fmt: skip


@contextmanager
def noted(found: Reached, notes: list[Finding]) -> Iterator[None]:
    """Note each draw from Python's or numpy's generator that the code a model can reach makes while the block runs."""
    table: dict[Any, Any] = {}
    for owner, words in ((random, "random"), (np.random, "np.random")):
        draws = {n: _noting(getattr(owner, n), f"{words}.{n}", notes) for n in _DRAWS if hasattr(owner, n)}
        table |= {owner: like(owner, draws), **{getattr(owner, name): draw for name, draw in draws.items()}}
    with standing_in(found, table), replaced(numbers.NUMPY, {"random": table[np.random]}):  # which stands for numpy there
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
