"""How much is tried: so many trials, for about as long as the export took; the most telling ones whatever they take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from torchferry import eager
from torchferry.records import Case

ESSENTIAL = 4  # trials that run whatever they take
USUAL = 16  # the same, for a model that is not large, unless the user said how long trials may take
SHORTEST = 10.0  # seconds that trials may always take: a file from elsewhere took us no time to make
# A trial that costs this process less than this is cheap: all of them take a second or two on an idle machine. Their number
# alone counts then, lest a busy machine see less of the same model.
CHEAP = 0.03
PATIENT = 60.0
LARGE = 256 * 2**20  # bytes of weights above which a trial takes seconds
SHARE = 4  # a trial may take this part of the time that is left


class Purse:
    """What may be spent on the trials of one case, and what has been."""

    def __init__(self, case: Case) -> None:
        self._budget, self._export = case.job.budget, sum(s.seconds for s in case.steps)
        self.large = eager.weight_bytes(case.value("inputs").module) > LARGE
        self._began, self._done = time.perf_counter(), 0
        self._example, self._own = 0.0, float("inf")  # what the example took: seconds, and seconds of this process's work

    @property
    def limit(self) -> float:
        """Seconds for all trials: as asked, else about as long as the export took, a quarter of that for a large model."""
        if self._budget.seconds is not None:
            return self._budget.seconds
        if self.large:
            return self._export / 4
        return max(PATIENT if self._own < CHEAP else SHORTEST, self._export)

    @property
    def number(self) -> int:
        """How many trials were paid for."""
        return self._done

    @property
    def empty(self) -> bool:
        """Whether no further trial may begin."""
        least = ESSENTIAL if self.large or self._budget.seconds is not None else USUAL
        return self._done >= self._budget.trials or (self._done >= least and self._spent() > self.limit)

    def affords(self, times: float) -> bool:
        """Return whether a trial that feeds so many times more than the example leaves enough for others."""
        return self._example * times <= max((self.limit - self._spent()) / SHARE, 2 * self._example)

    @contextmanager
    def paying(self) -> Iterator[None]:
        """Count a trial; the first one, the example, shows what trials cost."""
        began, own = time.perf_counter(), time.thread_time()
        yield
        if self._done < 2:  # the second is the example again: what torch loads at a first call is no cost of trials
            self._example = self._example or time.perf_counter() - began
            self._own = min(self._own, time.thread_time() - own)
        self._done += 1

    def _spent(self) -> float:
        return time.perf_counter() - self._began
