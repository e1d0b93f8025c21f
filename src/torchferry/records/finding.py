"""What every finding is."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchferry.records.edits import Facts
from torchferry.records.faults import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a stage noticed: a fact without words. A rule of the catalogue turns it into a diagnosis."""

    kind: str
    location: Location | None = None
    facts: Facts = field(default_factory=dict)
