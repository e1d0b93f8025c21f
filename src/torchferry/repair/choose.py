"""What to try next: the first repair on offer that was not tried yet, root cause first."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import find
from torchferry.edits.capture import Piecewise
from torchferry.records import SAFETY_ORDER, Case, Diagnosis, History, Repair, Safety


def next_repair(history: History, allow: Safety) -> tuple[Diagnosis, Repair] | None:
    """Return a diagnosis and a repair for it that is allowed and was not tried on this job, or None."""
    slow = any(isinstance(case.job.edits[-1], Piecewise) for case in history.cases if case.job.edits and _took_too_long(case))
    for diagnosis, repair in offers(history.best):
        if slow and isinstance(repair.edit, Piecewise):  # the other guards of such a model are no quicker
            continue
        allowed = SAFETY_ORDER.index(repair.safety) <= SAFETY_ORDER.index(allow)
        if allowed and repair not in history.tried and repair.edit not in history.best.job.edits:
            return diagnosis, repair
    return None


def _took_too_long(case: Case) -> bool:
    fault = case.fault("capture")
    return fault is not None and any(link.type_name == "TookTooLong" for link in fault.chain())


def offers(case: Case) -> Iterator[tuple[Diagnosis, Repair]]:
    """Yield each diagnosis of a case with each repair that its rule offers. A note needs no repair."""
    for diagnosis in case.diagnoses:
        if diagnosis.severity == "note":
            continue
        for repair in find(diagnosis.code).rule.repairs(case, diagnosis):
            if repair.safety != "manual":
                yield diagnosis, repair
