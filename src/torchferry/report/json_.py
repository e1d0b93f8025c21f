"""The report as JSON, and back: `to_json(from_json(data)) == data`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from torchferry import intake
from torchferry.errors import UsageError
from torchferry.report.view import Reportable, View, see

SCHEMA = "torchferry-report/1"


def to_json(result: Reportable | View) -> dict[str, Any]:
    """Return a result as JSON-able data."""
    return {"schema": SCHEMA, **_plain(see(result))}


def from_json(data: Mapping[str, Any]) -> View:
    """Return the view that was written by `to_json`; every renderer takes it in place of a result."""
    if data.get("schema") != SCHEMA:
        raise UsageError(f"this is not a report of torchferry: its schema is {data.get('schema')!r}, not {SCHEMA!r}")
    return intake.made(View, {k: v for k, v in data.items() if k != "schema"}, "the report", endless=True)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no name for these: "inf", "nan"
    return value
