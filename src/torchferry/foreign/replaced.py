"""Attributes set for a while and put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MISSING = object()


@contextmanager
def replaced(owner: Any, attributes: dict[str, Any]) -> Iterator[None]:
    """Set attributes of a module or class for the block; afterwards what was there before is there again, or nothing."""
    before = {name: vars(owner).get(name, _MISSING) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            if value is not _MISSING:
                setattr(owner, name, value)
            elif name in vars(owner):
                delattr(owner, name)
