"""An edit as plain data (its stage, its name, and parameters that JSON can hold), and the edit that such data stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from torchferry.errors import UsageError, did_you_mean
from torchferry.records import Edit, Facts
from torchferry.records.rewrites import Variant

KIND = "is"  # of a field that may hold one of several classes: which it holds


def plain(value: Any) -> Any:
    """Return a value as JSON has it: of a record what is not the default, with what can be left out of all of them at the end."""
    if is_dataclass(value):
        said = {_word(f.name): plain(v) for f in _in_order(value) if (v := getattr(value, f.name)) != f.default}
        return {KIND: type(value).__name__} | said if isinstance(value, Variant) else said
    if isinstance(value, Mapping):
        return {name: plain(v) for name, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def read(stage: str, name: str, params: Facts | None = None) -> Edit:
    """Return the edit that plain data stands for."""
    if (stage, name) == ("translate", "graph-pass"):  # as recipes had it once
        return read(stage, (params or {}).get("name", ""))
    if (kind := kinds().get((stage, name))) is None:
        near = did_you_mean(name, [known for at, known in kinds() if at == stage])
        raise UsageError(f"the stage {stage} has no edit `{name}`{near}")
    try:
        made: Edit = _made(kind, params or {})
    except (TypeError, ValueError, KeyError) as error:
        wanted = ", ".join(_word(f.name) for f in _in_order(kind))
        raise UsageError(f"the edit `{name}` takes {wanted or 'nothing'}, not {params!r}") from error
    return made


@cache
def kinds() -> dict[tuple[str, str], type[Edit]]:
    """Return the class of each edit that the stages know, by its stage and name."""
    from torchferry.edits import capture, check, inputs, translate, verify

    there = [kind for module in (inputs, capture, translate, check, verify) for kind in vars(module).values()]
    every: list[type[Edit]] = [kind for kind in there if isinstance(kind, type) and issubclass(kind, Edit)]
    return {(kind.stage, kind.name): kind for kind in every if hasattr(kind, "name")}  # what several share has none


def _made(kind: Any, value: Any) -> Any:
    """Return plain data as a value of the type that a field is declared with."""
    if is_dataclass(kind):
        names, hints = {_word(f.name): f.name for f in fields(kind)}, get_type_hints(kind)
        return kind(**{names[word]: _made(hints[names[word]], v) for word, v in value.items()})  # type: ignore[operator]
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        return tuple(_made(each, v) for each, v in zip(_each(inner, len(value)), value, strict=True))
    if get_origin(kind) is Mapping:
        return {name: _made(inner[1], v) for name, v in value.items()}
    if isinstance(kind, UnionType) and value is not None:
        named = value.get(KIND) if isinstance(value, Mapping) else None
        chosen = next((k for k in inner if k.__name__ == named), None)
        return _made(inner[0], value) if chosen is None else _made(chosen, {w: v for w, v in value.items() if w != KIND})
    return value


def _each(inner: tuple[Any, ...], count: int) -> Iterator[Any]:
    return iter((inner[0],) * count if inner[-1] is Ellipsis else inner)


def _in_order(record: Any) -> list[Field[Any]]:
    return sorted(fields(record), key=lambda f: f.kw_only is True)


def _word(name: str) -> str:
    """Return what a field is called outside: `from` is a word of Python's."""
    return name.removesuffix("_")
