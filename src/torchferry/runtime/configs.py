"""The configuration files that transformers keeps in a directory: what they may not say, and its errors about them in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from torchferry import intake
from torchferry.errors import FileRefused, TorchferryError

IMPLEMENTATIONS = ("attn_implementation", "experts_implementation")  # an owner/name there is native code, to be downloaded


def read(path: Path) -> dict[str, Any]:
    """Return a config.json as plain data. Raises FileRefused where it has code fetched and run, or names no class properly."""
    held = intake.parsed(intake.text_of(path), str(path))
    for key, value in _entries(held):
        if key.strip("_") in IMPLEMENTATIONS and any("/" in str(v) for v in _leaves(value)):
            raise FileRefused(str(path), f"`{key}` names code that would be downloaded and run")
    named, kind = held.get("architectures") or [], held.get("model_type") or ""
    if not isinstance(named, list) or not all(isinstance(n, str) and n.isidentifier() for n in named):
        raise FileRefused(str(path), "`architectures` must be a list of names of classes")
    if not isinstance(kind, str):
        raise FileRefused(str(path), "`model_type` must be text")
    if not isinstance(held.get("auto_map") or {}, dict):
        raise FileRefused(str(path), "`auto_map` must be an object")
    return held


@contextmanager
def reading(path: Path, what: str = "transformers cannot read it") -> Iterator[None]:
    """Raise what transformers, which reads or uses the file in the block, raises about it as FileRefused."""
    try:
        yield
    except TorchferryError:
        raise
    except Exception as error:  # values of a wrong type or range: each class of transformers has errors of its own
        raise FileRefused(str(path), f"{what}: {type(error).__name__}: {error}") from error


def generating(directory: Path) -> AbstractContextManager[None]:
    """Return a context in which what a directory's documents make transformers raise while it writes is FileRefused."""
    return reading(directory, "no text can be written with what its documents say")


def _entries(held: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of an object, and of all objects in it, with their values."""
    for key, value in held.items():
        yield key, value
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from _entries(inner)


def _leaves(value: Any) -> Iterator[Any]:
    for inner in value.values() if isinstance(value, dict) else [value]:
        if isinstance(inner, dict):
            yield from _leaves(inner)
        else:
            yield inner
