"""A Job carried out: what surrounds the pipeline whoever asks for it, from a workspace to the sealed file in its place."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchferry import pipeline
from torchferry.errors import UsageError, did_you_mean
from torchferry.extras import require
from torchferry.files import digest_of, in_words, link_model, move_files, name_by_content, publish, size_on_disk, workspace
from torchferry.progress import Listener, listening, warnings_logged
from torchferry.records import Case, History, Job, Safety, Step
from torchferry.records.findings import WeightsQuantised
from torchferry.result import Kind, Result


def exported(job: Job, destination: Path | None, allow: Safety | None, progress: Listener | None) -> Result:
    """Return what a job came to: its verified file is sealed and put at `destination`, or kept as long as the result lives."""
    began = time.perf_counter()
    with working(job, destination, progress) as prepared:
        result = _hand_over(_healed(prepared, allow), destination)
    return replace(result, seconds=time.perf_counter() - began)


def compared(job: Job, path: Path, progress: Listener | None) -> Result:
    """Return how the file at `path`, which is the job's own, compares with the job's model."""
    began = time.perf_counter()
    with working(job, None, progress) as prepared:
        history = _healed(prepared, None)
    return Result("verify", history, path, time.perf_counter() - began, size_on_disk(path))


def broken_off(kind: Kind, step: Step, seconds: float) -> Result:
    """Return what ended outside of the pipeline, in words of the catalogue as any other failure."""
    from torchferry.diagnose import diagnose

    case = Case(Job(), (step,))
    case = replace(case, diagnoses=diagnose(case))
    return Result(kind, History((case,), case), seconds=seconds)


def allowed(repair: str) -> Safety | None:
    """Return what a user's word for repairs means; raises UsageError for another word."""
    known: dict[str, Safety | None] = {"off": None, "safe": "safe", "unsafe": "unsafe"}
    if repair not in known:
        raise UsageError(f'repair is "off", "safe" or "unsafe", not {repair!r}{did_you_mean(str(repair), known)}')
    return known[repair]


@contextmanager
def working(job: Job, destination: Path | None, progress: Listener | None) -> Iterator[Job]:
    """Give the job a workspace beside its destination; leave the user's model as it was, whatever happens."""
    require("a check of a file", "onnxruntime")
    if job.model is not None:
        require("an export", "torch", "onnxscript", "sympy")
    name = destination.name if destination is not None else "model.onnx"
    with listening(progress), warnings_logged(), _untouched(job.model), workspace(near=destination) as folder:
        yield replace(job, workspace=folder, file_name=name)


def _untouched(model: Any) -> AbstractContextManager[None]:
    """Return what keeps a model as it was; a file alone needs nothing of the sort, nor torch to be loaded."""
    if model is None:
        return nullcontext()
    from torchferry.eager import balanced, untouched

    @contextmanager
    def in_turn() -> Iterator[None]:
        with balanced(), untouched(model):  # two threads take turns: what they save and put back must not overlap
            yield

    return in_turn()


def _healed(job: Job, allow: Safety | None) -> History:
    """Return the job's history; what a model sets in context variables is set in a copy of the caller's context."""
    return copy_context().run(pipeline.heal, job, allow)


def _hand_over(history: History, destination: Path | None) -> Result:
    """Move the verified file into place, with the directory that it completes; nothing is left when there is none."""
    if not history.best.ok:
        return Result("export", history)
    with in_words(destination or "temporary files"):
        return _put(history, destination)


def _put(history: History, destination: Path | None) -> Result:
    from torchferry.certificate import seal

    made = history.best.file
    assert made is not None  # a verified case has one
    if not history.best.findings(WeightsQuantised):  # the certificate speaks of the exact numbers
        seal(made, history)
    name_by_content(made)
    digest = digest_of(made)
    if destination is None:
        folder = tempfile.TemporaryDirectory(prefix="torchferry-")
        kept = link_model(made, Path(folder.name))
        return Result("export", history, kept, bytes=size_on_disk(kept), folder=folder, sealed=digest)
    if history.best.value("generate") is not None:
        move_files(made.parent, destination.parent)
    else:
        publish(made, destination)
    return Result("export", history, destination, bytes=size_on_disk(destination), sealed=digest)
