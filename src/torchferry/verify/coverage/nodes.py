"""Which values inside the file were seen to vary: a node that gives one and the same number in every trial was not tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchferry.records import Fault
from torchferry.verify.coverage.mutants import with_values
from torchferry.verify.judge.trial import Judged
from torchferry.verify.run.intermediates import Inside

TRIALS = 6
MOST_NUMBERS = 2**24  # that one trial may have inside


def moving(inside: Inside, trials: Sequence[Judged]) -> tuple[int, int]:
    """Return how many of the file's values hang on its inputs' values, and how many of these were seen to move."""
    graph = inside.model.graph
    telling = with_values(graph)
    names = [n.output[0] for n in graph.node if n.output and n.output[0] in telling and n.output[0] in inside.names]
    first: dict[str, object] = {}
    moved: set[str] = set()
    for judged in trials[:TRIALS]:
        left = [n for n in names if n not in moved]
        if not left:
            break
        got = inside.sides.worker.run(inside.session, inside.sides.feeds(judged.args), left)
        if isinstance(got, Fault) or sum(np.size(v) for v in got) > MOST_NUMBERS:
            break
        for name, value in zip(left, got, strict=True):
            flat = np.asarray(value).reshape(-1)
            single = flat[:1].tobytes()
            if (flat != flat[:1]).any() or first.setdefault(name, single) != single:
                moved.add(name)
    return len(names), len(moved)
