"""Edits of the verify stage: what is taken for right."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.records import Edit


@dataclass(frozen=True, slots=True)
class AcceptRandom(Edit):
    """Take a file with a random generator of its own, whose values no trial can compare."""

    stage, name = "verify", "accept-random"
