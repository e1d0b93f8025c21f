"""What may stand in a project's `[tool.torchferry]` table: by type and range, and told by its line where it may not."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from torchferry import intake
from torchferry.errors import FileRefused, UsageError
from torchferry.records.documents import Within

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "tool.torchferry"


@dataclass(frozen=True, slots=True)
class Table:
    """What may stand in the table: options by their names on the command line, for `export`, `verify` and `check` alike."""

    target: str | None = None
    opset: Annotated[int | None, Within(1, 1000)] = None
    repair: Annotated[str | None, Within(form="off|safe")] = None
    format: Annotated[str | None, Within(form="text|json|markdown|sarif")] = None
    range: tuple[str, ...] = ()
    tolerance: str | float | None = None
    trials: Annotated[int | None, Within(1)] = None
    mutants: Annotated[int | None, Within(0)] = None
    seed: Annotated[int | None, Within(0)] = None
    seconds: Annotated[float | None, Within(0.1)] = None
    time_limit: Annotated[float | None, Within(0.1)] = None
    quiet: bool | None = None


def options(file: Path) -> dict[str, Any]:
    """Return what a project sets, by the names of the commands' parameters. Raises UsageError, with the line."""
    text = intake.text_of(file)
    try:
        held = tomllib.loads(text).get("tool", {}).get("torchferry", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"`{file}` is not the TOML that it should be: {error}") from error
    names = {name.replace("_", "-"): name for name in (f.name for f in fields(Table))}
    try:
        spelt = {names.get(key, key): value for key, value in held.items()} if isinstance(held, dict) else held
        table = intake.made(Table, spelt, str(file))
    except FileRefused as refused:
        key = (re.match(r"`([^`.\[]+)", refused.why) or ["", ""])[1]
        why = refused.why
        for spelling, name in names.items():
            why = why.replace(f"`{name}", f"`{spelling}")
        raise UsageError(f"{file}:{_line(text, key)}: in [{TABLE}], {why}") from refused
    said = {f.name: getattr(table, f.name) for f in fields(Table)}
    said["ranges"] = list(said.pop("range"))
    said["tolerance"] = None if said["tolerance"] is None else str(said["tolerance"])
    return {name: value for name, value in said.items() if value not in (None, [])}


def _line(text: str, key: str) -> int:
    """Return the line in which a key of the table stands, or that of the table."""
    spelt = re.escape(key).replace("_", "[-_]")
    inside = found = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = number if re.match(rf"\s*\[\s*{re.escape(TABLE)}\s*\]", line) else 0
            found = inside or found
        elif inside and key and re.match(rf"\s*[\"']?{spelt}[\"']?\s*=", line):
            return number
    return found or 1
