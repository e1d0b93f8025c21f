"""A place in the user's source that a capture has rewritten."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """A line to rewrite: in which function (by its first line), what it is, and how it is rewritten."""

    file: str
    line: int
    function: int
    kind: str
    how: str
