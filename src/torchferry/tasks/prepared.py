"""A transformers model made ready for the pipeline: a Job for each graph, and what the directory of them is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.records import Call, Job, Padding, Tolerance, Trial


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's graphs, and the user's own model beside them: the oracle, and the owner of the configuration.

    `write(directory, tolerance)` generates with the finished directory and with the model, and compares: one trial a text.
    """

    task: str
    parts: tuple[Job, ...]  # the one that generates last
    model: Any
    longest: int | None  # how long a text may be; None for no end
    write: Callable[[Path, Tolerance], tuple[Trial, ...]]
    pads: Callable[[Path, Tolerance], Padding | None] = lambda directory, allowed: None  # how padding moves its answers
    call: Callable[[Any, Mapping[str, Any]], Call] | None = None  # a call of the user's model as one of the last graph
