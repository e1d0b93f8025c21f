"""Stage 7 of 9 · diagnose: Case -> Diagnoses, root cause first."""

from __future__ import annotations

from torchferry.catalogue import load, strangers
from torchferry.diagnose.examine import examine
from torchferry.diagnose.rank import rank
from torchferry.records import Case, Diagnosis, Location
from torchferry.records.findings import CaptureStopped, DataDependent

__all__ = ["diagnose"]


def diagnose(case: Case) -> tuple[Diagnosis, ...]:
    """Return what is wrong with a case, root cause first, consequences left out."""
    if _healthy_file(case) and not strangers():  # over a hundred rules to load, and nothing for them to look at
        return ()
    entries = {entry.code: entry for entry in load()}
    found = examine(case, [e for e in entries.values() if not e.rule.last_resort])
    if _failed(case) and not any(d.severity == "error" for d in found):
        found += examine(case, [e for e in entries.values() if e.rule.last_resort])
    return rank(found, entries, _stops(case))


def _stops(case: Case) -> list[Location]:
    """Return the lines that stopped a capture, in the order in which they were met."""
    step = case.step("capture")
    met = [f.location for f in step.findings if isinstance(f, CaptureStopped | DataDependent)] if step is not None else []
    return [place for place in met if place is not None]


def _healthy_file(case: Case) -> bool:
    """Whether the job is a mere file, of which no stage noticed anything."""
    return case.job.model is None and not _failed(case) and not any(step.findings for step in case.steps)


def _failed(case: Case) -> bool:
    verified = case.value("verify")
    unproven = verified is not None and not verified.shown
    return any(step.fault is not None for step in case.steps) or bool(case.failed) or unproven
