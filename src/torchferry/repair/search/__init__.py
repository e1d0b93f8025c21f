"""Searches for a remedy: a stage says what stopped it, and here ways past that are tried, before the diagnosis is made.

captures   a capture that stopped: lines to rewrite, other strategies, and what else is in the way
rewrites   the lines to rewrite so that a capture succeeds
"""

from __future__ import annotations

from torchferry.records import Case, Step

__all__ = ["searched"]


def searched(case: Case, step: Step) -> Step:
    """Return a stage's answer with what a search for ways past its troubles adds; as it is where there is nothing to search."""
    if step.stage == "capture" and step.fault is not None:
        from torchferry.repair.search import captures

        return captures.searched(case, step)
    return step
