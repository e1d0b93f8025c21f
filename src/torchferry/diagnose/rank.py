"""Root cause first; what only follows from it is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchferry.catalogue import Entry
from torchferry.records import STAGES, Diagnosis, Location

SEVERITY_ORDER = ("error", "warning", "note")


def rank(found: Iterable[Diagnosis], entries: Mapping[str, Entry], stops: Sequence[Location] = ()) -> tuple[Diagnosis, ...]:
    """Return the diagnoses without repetitions and consequences: errors first, then by stage, then as the model runs.

    `stops` are the lines that stopped a capture. At the first of them stands a cause that has no line of its own.
    """
    unique = list({(d.code, str(d.location), d.message): d for d in found}.values())
    kept = [d for d in unique if not any(_follows(d, cause, entries, stops) for cause in unique)]
    order = {_line(place): number for number, place in reversed(list(enumerate(stops)))}
    return tuple(
        sorted(
            kept,
            key=lambda d: (
                SEVERITY_ORDER.index(d.severity),
                STAGES.index(entries[d.code].rule.stage),
                order.get(_line(d.location), len(order)),
            ),
        )
    )


def _follows(effect: Diagnosis, cause: Diagnosis, entries: Mapping[str, Entry], stops: Sequence[Location]) -> bool:
    """Say whether a diagnosis only follows from another: of a kind that may, and in a capture at its line or at none."""
    if effect.code not in entries[cause.code].rule.explains:
        return False
    if entries[effect.code].rule.stage != "capture" or not effect.location.line:
        return True
    place = cause.location if cause.location.line or not stops else stops[0]
    return _line(effect.location) == _line(place)


def _line(place: Location) -> tuple[str | None, int | None]:
    return place.file, place.line
