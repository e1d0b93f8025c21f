"""An exception, and a place, as plain data."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception as plain data: storable, printable, free of references to the model."""

    type_name: str
    text: str
    frames: tuple[Frame, ...] = ()
    cause: Fault | None = None

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """Return `error` and its chain of causes as data."""
        frames = tuple(Frame(f.filename, f.lineno or 0, f.name, f.line or "") for f in traceback.extract_tb(error.__traceback__))
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return cls(type(error).__name__, str(error), frames, Fault.of(cause) if cause is not None else None)

    @property
    def line(self) -> str:
        """What was raised, in one line: the first that says something, or else the name of its class."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), self.type_name)

    def chain(self) -> Iterator[Fault]:
        """Yield this fault, then what caused it, and so on to the root."""
        fault: Fault | None = self
        while fault is not None:
            yield fault
            fault = fault.cause


@dataclass(frozen=True, slots=True)
class Location:
    """Where: in the user's source, in the module tree, among the inputs, or in the ONNX graph. All optional."""

    file: str | None = None
    line: int | None = None
    module_path: str | None = None
    op: str | None = None
    input_name: str | None = None
    onnx_node: str | None = None

    def __str__(self) -> str:
        """Return the place nearest to the user's own words."""
        if self.file and self.line:
            return f"{self.file}:{self.line}"
        for label, value in (("input", self.input_name), ("module", self.module_path), ("node", self.onnx_node)):
            if value:
                return f"{label} {value}"
        return self.op or self.file or ""

    @property
    def brief(self) -> str:
        """The same without the folder, for what is kept longer than the folder may be."""
        return f"{Path(self.file).name}:{self.line}" if self.file and self.line else str(self)
