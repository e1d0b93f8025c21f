"""A view as it may be shown: every text in it goes through an escape, so that a field of tomorrow does too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torchferry.escape import line, prose
from torchferry.report.view import Reportable, View, see

Record = TypeVar("Record")
SENTENCES = frozenset({"message", "help", "evidence", "notes"})  # texts that may have several lines; others are names


def shown(result: Reportable | View) -> View:
    """Return the view of a result with nothing left in it that a terminal, a browser or a CI service acts upon."""
    return over(see(result), line, prose)


def over(record: Record, name: Callable[[str], str], said: Callable[[str], str]) -> Record:
    """Return a record with all its texts changed, however deep: sentences by `said`, and every other one by `name`."""
    fields = dataclasses.fields(record)  # type: ignore[arg-type]
    changed = {f.name: _changed(getattr(record, f.name), name, said, f.name in SENTENCES) for f in fields}
    return type(record)(**changed)


def _changed(value: Any, name: Callable[[str], str], said: Callable[[str], str], sentence: bool) -> Any:
    if isinstance(value, str):
        return said(value) if sentence else name(value)
    if isinstance(value, tuple):
        return tuple(_changed(item, name, said, sentence) for item in value)
    if isinstance(value, Mapping):
        return {name(key): _changed(item, name, said, sentence) for key, item in value.items()}
    return over(value, name, said) if dataclasses.is_dataclass(value) else value
