"""How much is tried: so many trials, and so much work; neither hangs on the clock unless the user sets one.

Ordinary trials and those directed at something in the model or in the file have a budget each: neither squeezes out the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from torchferry import eager
from torchferry.records import Bound, Case
from torchferry.verify.trials.work import NO_LOOPS, Loops, Work

ESSENTIAL = 4  # trials that run whatever they cost
USUAL = 16  # the same, for a model that is not large, unless the user said how long trials may take
DIRECTED = 4  # times as many directed trials as ordinary ones, at most
WORK = 1e10  # multiply-adds for the ordinary trials, and again for the directed ones: some seconds of one core for each
CHEAP = 1e8  # multiply-adds of a call of which there can be many
LARGE = 256 * 2**20  # bytes of weights above which a trial takes seconds
SHARE = 8  # one trial may cost this part of all work


class TrialBudget:
    """What may be spent on the trials of one case, and what has been."""

    def __init__(self, case: Case, work: Work, loops: Loops = NO_LOOPS) -> None:
        self._budget, self.work, self._loops = case.job.budget, work, loops
        self.large = eager.weight_bytes(case.answer(Bound).module) > LARGE
        self._began = time.perf_counter()
        self._cut_short = False
        self._done = {False: 0, True: 0}  # directed? -> trials
        self._spent = {False: 0.0, True: 0.0}

    @property
    def number(self) -> int:
        """How many trials were paid for."""
        return sum(self._done.values())

    @property
    def most(self) -> int:
        """How many trials there may be."""
        return self._budget.trials * (1 + DIRECTED)

    @property
    def late(self) -> bool:
        """Whether the time is over that the user set for all trials."""
        seconds = self._budget.seconds
        over = seconds is not None and self.number >= ESSENTIAL and time.perf_counter() - self._began > seconds
        self._cut_short = self._cut_short or over
        return over

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user is to know of how the trials ended."""
        if not self._cut_short:
            return ()
        return (f"the trials were cut short after {self._budget.seconds:g} s, as `Budget.seconds` asks; {self.number} were run",)

    def empty(self, *, directed: bool) -> bool:
        """Return whether no further trial of a kind may begin."""
        if directed:
            return self._done[True] >= DIRECTED * self._budget.trials or self._spent[True] > WORK
        least = ESSENTIAL if self.large else USUAL
        return self._done[False] >= self._budget.trials or (self._done[False] >= least and self._spent[False] > WORK)

    def affords(self, sizes: Mapping[str, int]) -> bool:
        """Return whether a trial at some sizes leaves enough for others."""
        return self.within(sizes, WORK / SHARE) or self.work.of(sizes) <= 2 * self.work.example

    def within(self, sizes: Mapping[str, int], work: float) -> bool:
        """Return whether a trial at some sizes costs no more than so much work."""
        return self.work.of(sizes) + self._loops.at({**self.work.sizes, **sizes}) <= work

    @property
    def cheap(self) -> bool:
        """Whether calls of the example's sizes cost next to nothing."""
        return self.work.example <= CHEAP

    def pay(self, sizes: Mapping[str, int], *, directed: bool, trial: bool = True) -> None:
        """Count a trial, or with `trial=False` a mere call of eager."""
        self._done[directed] += trial
        self._spent[directed] += self.work.of(sizes)
