"""The report as JSON, and back: `to_json(from_json(data)) == data`."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

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
    view: View = _read(View, {k: v for k, v in data.items() if k != "schema"})
    return view


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


def _read(kind: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _read(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(_read(get_args(kind)[0], item) for item in value)
    if isinstance(kind, types.UnionType):
        return value
    return float(value) if kind is float else value
