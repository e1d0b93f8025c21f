"""Stage 6 of 8 · diagnose: Case -> Diagnoses, root cause first."""

from __future__ import annotations

from torchferry.catalogue import load
from torchferry.diagnose.examine import examine
from torchferry.diagnose.rank import rank
from torchferry.records import Case, Diagnosis

__all__ = ["diagnose"]


def diagnose(case: Case) -> tuple[Diagnosis, ...]:
    """Return what is wrong with a case, root cause first, consequences left out."""
    entries = {entry.code: entry for entry in load()}
    found = examine(case, [e for e in entries.values() if not e.rule.last_resort])
    if _failed(case) and not any(d.severity == "error" for d in found):
        found += examine(case, [e for e in entries.values() if e.rule.last_resort])
    return rank(found, entries)


def _failed(case: Case) -> bool:
    verified = case.value("verify")
    unproven = verified is not None and (verified.failed or not verified.shown)
    return any(step.fault is not None for step in case.steps) or bool(unproven)
