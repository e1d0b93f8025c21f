"""What ends the work outside of all stages: the command line notices it."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.records.finding import Finding


@dataclass(frozen=True, slots=True)
class ModelNotLoaded(Finding):
    """The user's own code raised while the model was being made."""

    name: str  # as the user wrote it
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class ProcessEnded(Finding):
    """The process that did the work was ended by a signal, or at the time limit, or ended itself."""

    stage: str  # in which it was; empty where it had not told of any
    how: str  # the signal's name, or "exit code 1"
    time_limit: float | None
