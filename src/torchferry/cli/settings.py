"""The `[tool.torchferry]` table of a project's pyproject.toml: defaults of options, and nothing that loads or runs anything.

A project may come from anybody. So its table names no model, no code, no file to write, and gives no consent (`--trust`,
`--repair unsafe`); what it sets is told in the first line of a command, and the command line goes before it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from torchferry import intake
from torchferry.errors import FileRefused, UsageError
from torchferry.records.documents import Within

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE, TABLE = "pyproject.toml", "tool.torchferry"


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


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project sets, by the names of the commands' parameters; and the file that says so."""

    options: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None


def read(folder: Path) -> Settings:
    """Return the settings of the project that a folder is in: of the nearest pyproject.toml, upwards to the repository's root.

    Raises UsageError, with the line, for what may not stand there.
    """
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return Settings(_options(place / FILE), place / FILE)
        if (place / ".git").exists():
            break
    return Settings()


def _options(file: Path) -> dict[str, Any]:
    text = intake.text_of(file)
    try:
        held = tomllib.loads(text).get("tool", {}).get("torchferry", {})
    except (tomllib.TOMLDecodeError, AttributeError, RecursionError) as error:
        if "torchferry" not in text:  # somebody else's business
            return {}
        raise UsageError(f"`{file}` is not the TOML that it should be: {error}") from error
    names = {name.replace("_", "-"): name for name in (f.name for f in fields(Table))}
    try:
        spelt = {names.get(key, key): value for key, value in held.items()} if isinstance(held, dict) else held
        table = intake.made(Table, spelt, str(file))
    except FileRefused as refused:
        key = (re.match(r"`([^`.\[]+)", refused.why) or [""])[1]
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
