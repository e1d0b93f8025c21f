"""Lines of the user's own modules that use something which a capture must be prepared for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import lru_cache

from torch import nn

from torchferry.capture.source_map import is_model_file
from torchferry.records import Location


def using(module: nn.Module, pattern: str) -> Iterator[tuple[Location, str]]:
    """Yield the place and text of each line, in the classes of a module's parts, that matches a pattern."""
    for kind in dict.fromkeys(type(part) for part in module.modules()):
        for base in kind.__mro__:
            yield from _lines(base, pattern)


@lru_cache(maxsize=512)
def _lines(kind: type, pattern: str) -> tuple[tuple[Location, str], ...]:
    if not kind.__module__ or kind.__module__.split(".")[0] in ("torch", "builtins", "abc", "typing"):
        return ()
    try:
        file = inspect.getsourcefile(kind) or ""
        lines, first = inspect.getsourcelines(kind)
    except (TypeError, OSError):  # made at run time: there is no source to look at
        return ()
    if not is_model_file(file):
        return ()
    wanted = re.compile(pattern)
    return tuple((Location(file=file, line=first + n), text.strip()) for n, text in enumerate(lines) if wanted.search(text))
