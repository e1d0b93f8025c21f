"""Root cause first; what only follows from it is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchferry.catalogue import Entry
from torchferry.records import STAGES, Diagnosis

SEVERITY_ORDER = ("error", "warning", "note")


def rank(found: Iterable[Diagnosis], entries: Mapping[str, Entry]) -> tuple[Diagnosis, ...]:
    """Return the diagnoses without repetitions and consequences: errors first, then by stage."""
    unique = list({(d.code, str(d.location), d.message): d for d in found}.values())
    present = {d.code for d in unique}
    consequences = set().union(*(entries[code].rule.explains for code in present)) if present else set()
    kept = [d for d in unique if d.code not in consequences]
    return tuple(sorted(kept, key=lambda d: (SEVERITY_ORDER.index(d.severity), STAGES.index(entries[d.code].rule.stage))))
