"""Source repairs: rewrites of the user's functions, made in memory for the capture and offered as a patch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchferry.records import Edit

if TYPE_CHECKING:
    from torchferry.records.sites import Site

__all__ = ["diff", "sites_of"]


def diff(edits: Iterable[Edit]) -> str:
    """Return the unified diff of all rewrites among the edits; empty when there are none."""
    chosen = list(edits)
    if not any(e.stage == "capture" and e.name == "rewrite" for e in chosen):
        return ""
    from torchferry.capture.rewrites import patch

    return patch.diff(sites_of(chosen))


def sites_of(edits: Iterable[Edit]) -> Iterator[Site]:
    """Yield the places that the edits rewrite."""
    from torchferry.records.sites import Site

    for edit in edits:
        if edit.stage == "capture" and edit.name == "rewrite":
            yield from (Site(**facts) for facts in edit.params["sites"])
