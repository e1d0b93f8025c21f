"""Stage 6 of 8 · diagnose: Case -> Diagnoses, root cause first."""

from __future__ import annotations

from torchferry.catalogue import Entry, load
from torchferry.diagnose.examine import examine
from torchferry.diagnose.rank import rank
from torchferry.records import Case, Diagnosis

__all__ = ["diagnose"]


def diagnose(case: Case) -> tuple[Diagnosis, ...]:
    """Return what is wrong with a case, root cause first, consequences left out."""
    entries = {entry.code: entry for entry in load()}
    found = examine(case, [e for e in entries.values() if not e.rule.last_resort])
    unexplained = _unexplained(case, found, entries)
    return rank([*found, *examine(case, [e for e in entries.values() if e.rule.last_resort and e.rule.stage in unexplained])], entries)


def _unexplained(case: Case, found: list[Diagnosis], entries: dict[str, Entry]) -> set[str]:
    """Return the stages that failed without any rule knowing why."""
    explained = {entries[d.code].rule.stage for d in found if d.severity == "error"}
    failed = {step.stage for step in case.steps if step.fault is not None}
    verified = case.value("verify")
    if verified is not None and verified.failed:
        failed.add("verify")
    # an error found in an earlier stage is reason enough for a later one to fail
    order = case.job.stages
    return {s for s in failed if not any(order.index(e) <= order.index(s) for e in explained if e in order)}
