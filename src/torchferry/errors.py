"""The exceptions that torchferry raises.

    TorchferryError
    ├── UsageError          the call makes no sense: a typo, a contradiction, a path that cannot be written
    │   └── FileRefused     a file says what torchferry does not take from a file
    ├── ExportError         nothing verified came out; `.result` holds the diagnoses, `str()` reads them out
    ├── VerifyError         the file is not the model; likewise
    ├── FeedError           a feed that the file cannot take, and that cannot be coerced without loss
    ├── MissingDependency   an optional package is needed; the message has the command that installs it
    └── ForeignApiMoved     a private API of torch, onnx or onnxruntime is not where it was; names the version

A fault in the user's model is not among them: it travels as data (`records.Fault`) until `check=True`
turns the finished result into an `ExportError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from torchferry.escape import prose


class Worded(Exception):
    """An exception or a warning with names of others in its words: what is printed of it does nothing but be read."""

    def __str__(self) -> str:
        return prose(super().__str__())


class TorchferryError(Worded):
    """The root of all exceptions that torchferry raises on purpose."""


class UsageError(TorchferryError, ValueError):
    """The call makes no sense as it stands; the message says what to write instead."""


class FileRefused(UsageError):
    """A file says what torchferry does not take from a file; nothing of it was used. The diagnosis is CHK032."""

    code = "CHK032"

    def __init__(self, document: str, why: str) -> None:
        super().__init__(f"{self.code}: `{document}` is refused: {why}")
        self.document = document
        self.why = why

    def __reduce__(self) -> tuple[type[FileRefused], tuple[str, str]]:
        return type(self), (self.document, self.why)


class ExportError(TorchferryError):
    """Nothing verified came out. The text is the diagnosis; `result` is the whole story."""

    def __init__(self, result: Any) -> None:
        super().__init__(str(result))
        self.result = result

    def __str__(self) -> str:
        return str(self.args[0])  # a report is escaped as it is made


class VerifyError(ExportError):
    """The file does not compute what the model computes."""


class FeedError(TorchferryError, ValueError):
    """A feed that the file cannot take, and that cannot be coerced without losing something."""


class MissingDependency(TorchferryError, ImportError):
    """An optional package is needed for this; the message has the command that installs it."""


class ForeignApiMoved(TorchferryError):
    """A private API that we rely on is not where it was in the versions we know."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean `x`?)" for the known word nearest to a misspelt one, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""
