"""What a file takes and gives: its inputs, their sizes, and what is fixed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dim:
    """A size that may move: its name, the range that must hold, and why it ends there."""

    name: str
    low: int = 1
    high: int | None = None
    multiple_of: int = 1
    why: str = ""  # "wpe has 1024 rows"; empty when nothing bounds it
    asked: bool = False  # the user asked for this range, so giving up part of it is an error

    def __str__(self) -> str:
        span = f"{self.low}..{'' if self.high is None else self.high}"
        step = f", multiples of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{self.name} = {span}{step}" + (f" ({self.why})" if self.why else "")


Size = int | str  # 768, "batch_size", or an expression over dim names: "past_sequence_length + sequence_length"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output of the file: its name, dtype ("float32", "int64", "bool", ...) and sizes."""

    name: str
    dtype: str
    shape: tuple[Size, ...]
    why: tuple[str, ...] = ()  # for fixed axes, why they are fixed; as long as shape, or empty


@dataclass(frozen=True, slots=True)
class Signature:
    """All inputs in the file's order, the dims that their shapes speak of, and the arguments fixed in the file."""

    inputs: tuple[TensorSpec, ...]
    dims: tuple[Dim, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)  # argument name -> the constant it was fixed to, as text
    conditions: tuple[str, ...] = ()  # on several dims at once, as `torchferry.guards` reads them: "past + sequence <= 1024"

    def dim(self, name: str) -> Dim | None:
        """Return the dim of that name, or None."""
        return next((d for d in self.dims if d.name == name), None)

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Where each size that moves by itself can be read: the first input that has it, and the axis."""
        found: dict[str, tuple[int, int]] = {}
        for number, spec in enumerate(self.inputs):
            for axis, size in enumerate(spec.shape):
                if isinstance(size, str) and size.isidentifier():
                    found.setdefault(size, (number, axis))
        return found


def folded(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts with those told once that differ in the number of a layer alone: `past.0..11.key[0]` for twelve."""
    groups: dict[str, list[int]] = {}
    for text in texts:
        number = re.search(r"(?<=\.)\d+(?=\.)", text)
        alike = re.sub(rf"(?<=\.){number[0]}(?=\.)", "\0", text) if number else text
        groups.setdefault(alike, []).append(int(number[0]) if number else 0)
    shown: list[str] = []
    for alike, numbers in groups.items():
        if "\0" in alike and len(numbers) > 2 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
            shown.append(alike.replace("\0", f"{numbers[0]}..{numbers[-1]}"))
        else:
            shown += [alike.replace("\0", str(number)) for number in numbers]
    return tuple(shown)
