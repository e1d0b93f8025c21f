"""A place in the user's source that a capture has rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SiteKind = Literal[
    "branch", "check", "exit", "for", "index", "list", "lookup", "number", "stop", "store", "ternary", "truth", "while"
]  # fmt: skip
SiteRewrite = Literal[
    "all", "always", "cond", "drop", "extreme", "full", "given", "items", "mask", "scan", "scan-after-first", "scan-from-first",
    "scans", "tensor", "where", "while_loop",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """A line to rewrite: in which function (by its first line), what it is, and how it is rewritten."""

    file: str
    line: int
    function: int
    kind: SiteKind
    how: SiteRewrite
