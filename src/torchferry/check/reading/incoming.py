"""A file as it comes in: what its first bytes say, and a child process that has begun to open it.

Nothing heavy is imported here: both processes load their libraries at the same time, so that a healthy file costs little
more than opening it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchferry.check.reading.sniff import sniff
from torchferry.edits.check import CheckEdit
from torchferry.records import Job
from torchferry.records.findings import Sniffed
from torchferry.worker import Worker

LONGEST = 120.0  # seconds for opening or running an unknown file


@dataclass(frozen=True, slots=True)
class Arrival:
    """The file, the folder to work in, what the file is, and who opens it."""

    path: Path
    folder: Path
    sniffed: Sniffed
    worker: Worker


@contextmanager
def received(job: Job) -> Iterator[Arrival]:
    """Give what is known of the job's file at once; the child process is gone afterwards."""
    if job.onnx is None or job.workspace is None:
        raise ValueError("a job without a model needs a file and a workspace")
    sniffed = sniff(job.onnx)
    with child(job) as worker:
        if sniffed.kind == "onnx" and not job.edits_for(CheckEdit):
            worker.begin_open(job.onnx)
        yield Arrival(job.onnx, job.workspace, sniffed, worker)


def child(job: Job) -> Worker:
    """Return a child process in which the job's file can be opened and run."""
    return Worker(_patience(job))


def _patience(job: Job) -> float:
    """Return how long one opening or run may take: the stage as a whole has the job's limit, and makes several."""
    return min(job.budget.time_limit / 3, LONGEST)
