"""Stage 4 of 8 · check: Translated -> Checked."""

from __future__ import annotations

from torchferry.records import Case, Step

__all__ = ["check"]


def check(case: Case) -> Step:
    """Return what a file turned out to be: the one that was just translated, or, in a job without a model, any."""
    if case.job.model is not None:
        from torchferry.check import ours

        return ours.examine(case)
    from torchferry.check.arrival import received

    with received(case.job) as arrival:
        from torchferry.check import foreign  # loads onnx, while the child process loads onnxruntime

        return foreign.examine(case, arrival)
