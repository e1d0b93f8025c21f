"""Stage 4 of 9 · check: Translated -> Checked."""

from __future__ import annotations

from torchferry.records import Case, Step

__all__ = ["check"]


def check(case: Case) -> Step:
    """Return what a file turned out to be: the one that was just translated, or, in a job without a model, any."""
    if case.job.model is not None:
        from torchferry.check import translated_file

        return translated_file.examine(case)
    from torchferry.check.reading.incoming import received

    with received(case.job) as arrival:
        from torchferry.check import any_file  # loads onnx, while the child process loads onnxruntime

        return any_file.examine(case, arrival)
