"""What is noticed after the pipeline, when a directory of files is made."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.records.finding import Finding


@dataclass(frozen=True, slots=True)
class WeightsQuantised(Finding):
    """The weights of the file handed over have fewer bits than those that were verified."""

    precision: str
