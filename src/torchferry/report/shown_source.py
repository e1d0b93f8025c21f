"""The user's own lines: how a place is called, and what stands there."""

from __future__ import annotations

import linecache
import os
from pathlib import Path

from torchferry.records import Location


def near(file: str) -> str:
    """Return a path as seen from the working directory where that is shorter."""
    if not file or file.startswith("<"):
        return file
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else Path(relative).as_posix()


def line(file: str | None, number: int | None) -> str:
    """Return the text of a source line, without its line end; empty when there is none to show."""
    if not file or not number:
        return ""
    return linecache.getline(file, number).rstrip().expandtabs(4)


def place(where: Location) -> str:
    """Return a place in words: `model.py:12`, `input ids`, and what else is known of it."""
    first = f"{near(where.file)}:{where.line}" if where.file and where.line else ""
    rest = (("input", where.input_name), ("module", where.module_path), ("op", where.op), ("node", where.onnx_node))
    named = [f"{label} `{value}`" for label, value in rest if value]
    return ", ".join([first, *named] if first else named) or near(where.file or "")
