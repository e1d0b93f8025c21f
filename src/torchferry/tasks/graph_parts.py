"""A transformers model made ready for the pipeline: a module of plain tensors, example calls, and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchferry.records import Call, Tolerance, Trial
from torchferry.tasks.padding import Padding


@dataclass(frozen=True, slots=True)
class GraphPart:
    """One graph: the arguments of `torchferry.export` that it takes to get it, by the same names."""

    file_name: str
    model: Any
    args: tuple[Any, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dynamic_shapes: tuple[Any, ...]  # for each argument {axis: "dim name" or expression}
    ranges: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    examples: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's graphs, and the user's own model beside them: the oracle, and the owner of the configuration.

    `write(directory, tolerance)` generates with the finished directory and with the model, and compares: one trial a text.
    """

    task: str
    parts: tuple[GraphPart, ...]  # the one that generates last
    model: Any
    longest: int | None  # how long a text may be; None for no end
    write: Callable[[Path, Tolerance], tuple[Trial, ...]]
    pads: Callable[[Path, Tolerance], Padding | None] = lambda directory, allowed: None  # how padding moves its answers
    call: Callable[[Any, Mapping[str, Any]], Call] | None = None  # a call of the user's model as one of the last graph
