"""A change to a Job that a repair makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchferry.records.stages import Stage

Facts = Mapping[str, Any]  # JSON-able values only: text, numbers, booleans, None, lists and dicts of these


@dataclass(frozen=True, slots=True)
class Edit:
    """A named, comparable, storable change to a Job. The stage that it names knows how to carry it out."""

    stage: Stage
    name: str
    params: Facts = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{k}={v!r}" for k, v in self.params.items())
        return f"{self.stage}: {self.name}({words})"
