"""The `[tool.torchferry]` table of a project's pyproject.toml: defaults of options, and nothing that loads or runs anything.

A project may come from anybody. So its table names no model, no code, no file to write, and gives no consent (`--trust`,
`--repair unsafe`); what it sets is told in the first line of a command, and the command line goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "pyproject.toml"


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
            if b"torchferry" not in (place / FILE).read_bytes():  # of most projects: nothing needs to be loaded for them
                return Settings()
            from torchferry.cli.settings_table import options

            return Settings(options(place / FILE), place / FILE)
        if (place / ".git").exists():
            break
    return Settings()
