"""How a checked file stands as it is: repairs that nobody has written to a file have not mended anything yet."""

from __future__ import annotations

from pathlib import Path

from torchferry.edits.check import CoerceFeeds
from torchferry.records import History


def unwritten(history: History, path: Path | None) -> bool:
    """Whether a file works only with repairs that were made on a copy, while `path` still is the file as it came."""
    job, checked = history.best.job, history.best.value("check")
    if job.onnx is None or job.model is not None or checked is None or checked.path is None:
        return False
    return path == job.onnx and Path(checked.path) != job.onnx


def feeds_mended(history: History) -> bool:
    """Whether the feeds, and not the file, had to be changed for it to run."""
    return any(isinstance(repair.edit, CoerceFeeds) for repair in history.kept)
