"""Source repairs: rewrites of the user's functions, made in memory for the capture and offered as a patch."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.edits.capture import Rewrite

__all__ = ["diff"]


def diff(edits: Sequence[Rewrite]) -> str:
    """Return the unified diff of all rewrites; empty when there are none."""
    if not edits:
        return ""
    from torchferry.capture.rewrites import patch

    return patch.diff(site for edit in edits for site in edit.sites)
