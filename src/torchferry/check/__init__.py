"""Stage 4 of 8 · check: Translated -> Checked."""

from __future__ import annotations

from torchferry.check import foreign, ours
from torchferry.records import Case, Step

__all__ = ["check"]


def check(case: Case) -> Step:
    """Return what a file turned out to be: the one that was just translated, or, in a job without a model, any."""
    return foreign.examine(case) if case.job.model is None else ours.examine(case)
