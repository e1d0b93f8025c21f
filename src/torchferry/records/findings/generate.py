"""What the generate stage may notice of a directory as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.records.evidence import Difference
from torchferry.records.finding import Finding


@dataclass(frozen=True, slots=True)
class TextDiffers(Finding):
    """A text that the directory writes otherwise than the model does: which, in what, and how many of all texts are like it."""

    text: str
    differences: tuple[Difference, ...]
    wrong: int
    texts: int


@dataclass(frozen=True, slots=True)
class WeightsQuantised(Finding):
    """The weights of the file handed over have fewer bits than those that were verified."""

    precision: str
