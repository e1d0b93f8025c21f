"""What every finding is; the findings themselves stand in `torchferry.records.findings`."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchferry.records.faults import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a stage noticed: facts without words. A rule of the catalogue turns it into a diagnosis."""

    location: Location | None = field(default=None, kw_only=True)
