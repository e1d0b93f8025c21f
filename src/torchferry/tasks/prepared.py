"""A transformers model made ready for the pipeline: a module of plain tensors, example calls, and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchferry.records import Call


@dataclass(frozen=True, slots=True)
class Part:
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
    """A task's graphs, and the user's own model beside them: the oracle, and the owner of the configuration."""

    task: str
    parts: tuple[Part, ...]
    model: Any
