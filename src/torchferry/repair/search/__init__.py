"""Searches for a remedy: a stage says what stopped it, and here ways past that are tried, before the diagnosis is made.

captures   a capture that stopped: lines to rewrite, other strategies, and what else is in the way
rewrites   the lines to rewrite so that a capture succeeds
baked/     a file that fails on a feed: readings of its constants under which sizes of an example can move
"""

from __future__ import annotations

from torchferry.records import Case, Step
from torchferry.records.findings import SizeSuspected

__all__ = ["searched"]


def searched(case: Case, step: Step) -> Step:
    """Return a stage's answer with what a search for ways past its troubles adds; as it is where there is nothing to search."""
    if step.stage == "capture" and step.fault is not None:
        from torchferry.repair.search import captures

        return captures.searched(case, step)
    if any(isinstance(finding, SizeSuspected) for finding in step.findings):
        from torchferry.repair.search.baked import suspects

        return suspects.searched(case, step)
    return step
