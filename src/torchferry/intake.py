"""The door for data: text from a file -> a record, by the types of the record's own fields; whatever else is refused.

A file may say anything, so nothing of it is used before it has come through here: known keys alone, each of its type and within
its range. What a document may say is a frozen dataclass in `records/documents.py`; `Within` gives a field its range.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from torchferry.errors import FileRefused, did_you_mean

LARGEST = 64 << 20  # bytes of a document; the largest that torchferry writes has some thousands
MOST = 1 << 62  # of a whole number, where no range is given
R = TypeVar("R")


def read(kind: type[R], path: Path) -> R:
    """Return what a file says, as a record of this kind. Raises FileRefused where it says anything else."""
    return told(kind, text_of(path), str(path))


def told(kind: type[R], text: str, document: str) -> R:
    """Return what a text says, as a record of this kind; `document` is what the user knows it by. Raises FileRefused likewise."""
    return made(kind, parsed(text, document), document)


def text_of(path: Path) -> str:
    """Return the text of a file. Raises FileRefused where it has none, or too much."""
    try:
        if not path.is_file():
            raise FileRefused(str(path), "it is no file")
        if path.stat().st_size > LARGEST:
            raise FileRefused(str(path), f"it is larger than {LARGEST >> 20} MB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileRefused(str(path), f"it cannot be read as text: {error}") from error


def parsed(text: str, document: str) -> dict[str, Any]:
    """Return the object that a text is in JSON; `document` is what the user knows it by. Raises FileRefused where it is none."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) != len(pairs):
            raise ValueError("a key is there twice")
        return found

    try:
        held = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise FileRefused(document, f"it is not the JSON that it should be: {error}") from error
    if not isinstance(held, dict):
        raise FileRefused(document, "it is not the JSON that it should be: it is no object")
    return held


def made(kind: type[R], held: Any, document: str, *, endless: bool = False) -> R:
    """Return plain data as a record of this kind. Raises FileRefused, which names the place, where it is anything else.

    endless: numbers may be "inf" or "nan", as text.
    """

    def refuse(at: str, why: str) -> NoReturn:
        raise FileRefused(document, f"`{at}` {why}" if at else f"it {why}")

    def record(kind: Any, value: Any, at: str) -> Any:
        if not isinstance(value, dict):
            refuse(at, f"is {_named(value)}, and must be an object")
        wanted = _fields(kind)
        for key in value:
            if key not in wanted:
                refuse(_inside(at, key), f"is not among what may stand there{did_you_mean(key, wanted)}")
        for key, (_, needed) in wanted.items():
            if needed and key not in value:
                refuse(_inside(at, key), "is missing")
        return kind(**{key: of(wanted[key][0], item, _inside(at, key)) for key, item in value.items()})

    def of(kind: Any, value: Any, at: str) -> Any:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            found = of(arguments[0], value, at)
            if found is not None and not arguments[1].holds(found):
                refuse(at, f"is out of range: it must be {arguments[1]}")
            return found
        if dataclasses.is_dataclass(kind):
            return record(kind, value, at)
        if origin is typing.Literal:
            return value if value in arguments else refuse(at, f"must be one of {', '.join(map(repr, arguments))}")
        if origin is tuple:
            if not isinstance(value, list):
                refuse(at, f"is {_named(value)}, and must be a list")
            kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
            if len(kinds) != len(value):
                refuse(at, f"has {len(value)} parts, and must have {len(kinds)}")
            return tuple(of(k, v, f"{at}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
        if origin is Mapping:
            if not isinstance(value, dict):
                refuse(at, f"is {_named(value)}, and must be an object")
            return {key: of(arguments[1], item, _inside(at, key)) for key, item in value.items()}
        if isinstance(kind, types.UnionType):
            fitting = [k for k in arguments if _is(k, value)]
            return of(fitting[0], value, at) if fitting else refuse(at, f"is {_named(value)}, and must be {_words(kind)}")
        if endless and kind is float and value in ("inf", "-inf", "nan"):
            return float(value)
        if not _is(kind, value):
            refuse(at, f"is {_named(value)}, and must be {_words(kind)}")
        if (isinstance(value, int) and abs(value) > MOST) or (isinstance(value, float) and not math.isfinite(value)):
            refuse(at, "is out of range")
        return float(value) if kind is float else value

    made: R = record(kind, held, "")
    return made


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return {field: (its type, whether it must be there)}."""
    hints = typing.get_type_hints(kind, include_extras=True)
    missing = dataclasses.MISSING
    return {f.name: (hints[f.name], f.default is missing and f.default_factory is missing) for f in dataclasses.fields(kind)}


def _is(kind: Any, value: Any) -> bool:
    """Whether a value is of the plain type that a kind is at its root; True and False are no numbers."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _is(arguments[0], value)
    plain = {tuple: list, Mapping: dict, float: int | float}.get(origin or kind, kind)
    if dataclasses.is_dataclass(plain):
        plain = dict
    return isinstance(value, plain) and (kind is bool or not isinstance(value, bool))


def _inside(at: str, key: str) -> str:
    return f"{at}.{key[:80]}" if at else key[:80]


NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number", types.NoneType: "null"}
NAMES |= {list: "a list", dict: "an object", tuple: "a list", Mapping: "an object"}


def _named(value: Any) -> str:
    return NAMES.get(type(value), type(value).__name__)


def _words(kind: Any) -> str:
    if isinstance(kind, types.UnionType):
        return " or ".join(_words(k) for k in typing.get_args(kind))
    kind = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    return NAMES.get(typing.get_origin(kind) or kind, "an object")
