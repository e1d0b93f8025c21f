"""Lines of the user's own modules that use something which a capture must be prepared for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from torch import nn

from torchferry.records import Location
from torchferry.whose_code import may_be_a_models


def using(module: nn.Module, pattern: str) -> Iterator[tuple[Location, str]]:
    """Yield the place and text of each line, in the classes of a module's parts, that matches a pattern."""
    for kind in dict.fromkeys(type(part) for part in module.modules()):
        for base in kind.__mro__:
            yield from _lines(base, pattern)


@lru_cache(maxsize=512)
def _lines(kind: type, pattern: str) -> tuple[tuple[Location, str], ...]:
    if not kind.__module__ or kind.__module__.split(".")[0] in ("torch", "builtins", "abc", "typing"):
        return ()
    wanted = re.compile(pattern)
    found = {
        (file, first + n): text.strip()
        for file, first, lines in _blocks(kind)
        for n, text in enumerate(lines)
        if wanted.search(text)
    }
    return tuple((Location(file=file, line=line), text) for (file, line), text in found.items())


@lru_cache(maxsize=512)
def _blocks(kind: type) -> tuple[tuple[str, int, list[str]], ...]:
    """Return the source of a class, and of methods that it was given from elsewhere: file, first line, lines."""
    blocks = list(_source(kind))
    for method in vars(kind).values():
        code = getattr(inspect.unwrap(method), "__code__", None) if inspect.isfunction(method) else None
        if code is not None and not any(
            file == code.co_filename and first <= code.co_firstlineno < first + len(lines) for file, first, lines in blocks
        ):
            blocks += _source(method)
    return tuple(blocks)


def _source(thing: Any) -> Iterator[tuple[str, int, list[str]]]:
    try:
        file = inspect.getsourcefile(thing) or ""
        lines, first = inspect.getsourcelines(thing)
    except (TypeError, OSError):  # made at run time: there is no source to look at
        return
    if may_be_a_models(file):
        yield file, first, lines
