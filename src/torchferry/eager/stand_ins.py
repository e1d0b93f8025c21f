"""What stands in the place of an iterator while a model is called: what one has given away, nobody can put back."""

from __future__ import annotations

import copy
import types
import warnings
from collections.abc import Iterable
from typing import Any

from torchferry.errors import UsageError

# a copy of one of these has a place of its own in the same container
_CONTAINERS: tuple[Iterable[Any], ...] = ([], (), "", b"", bytearray(), range(0), {}, set())
OVER_A_CONTAINER = tuple(type(iter(held)) for held in _CONTAINERS)


def is_iterator(value: Any) -> bool:
    """Whether a value is an iterator of Python's own: one of the user's keeps its place in attributes."""
    kind = type(value)
    return hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools")


def stand_in(iterator: Any) -> Any:
    """Return a copy of an iterator; what refuses to be asked, where there can be none."""
    try:
        with warnings.catch_warnings():  # Python says that it will give up copies of those of itertools
            warnings.simplefilter("ignore", DeprecationWarning)
            return copy.copy(iterator) if isinstance(iterator, OVER_A_CONTAINER) else copy.deepcopy(iterator)
    except Exception:  # a generator, or one over something that nobody can copy
        return AtItsPlace()


class AtItsPlace:
    """Stands for an iterator that cannot be copied, such as a generator."""

    def __iter__(self) -> AtItsPlace:
        return self

    def __next__(self) -> Any:
        raise UsageError(
            "the model's forward takes the next value of a generator, which can be neither copied nor set back: a call would "
            "change your model, so none is made; keep the values in a list, or give them to forward"
        )

    def send(self, value: Any) -> Any:
        return next(self)


def is_generator(value: Any) -> bool:
    """Whether a value is a generator, or stands for one."""
    return isinstance(value, types.GeneratorType | AtItsPlace)
