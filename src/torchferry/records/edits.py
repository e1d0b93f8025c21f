"""What every change to a Job is; the changes themselves stand in `torchferry.edits`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torchferry.records.stages import Stage

Facts = Mapping[str, Any]  # JSON-able values only: text, numbers, booleans, None, lists and dicts of these


class _ByName(type):
    """Lets `Edit(stage, name, params)`, as recipes print it, give the edit of that name: nothing is an Edit and no more."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Edit:
            return super().__call__(*args, **kwargs)
        from torchferry.edits.stored import read

        return read(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Edit(metaclass=_ByName):
    """A comparable, storable change to a Job; `torchferry.edits` has a class for each. The stage that it names carries it out."""

    stage: ClassVar[Stage]
    name: ClassVar[str]

    @property
    def params(self) -> Facts:
        """What there is to it beside its name, as plain data: to be printed and stored, not to be carried out by."""
        from torchferry.edits.stored import plain

        said: Facts = plain(self)
        return said

    def __str__(self) -> str:
        words = ", ".join(f"{k}={v!r}" for k, v in self.params.items())
        return f"{self.stage}: {self.name}({words})"
