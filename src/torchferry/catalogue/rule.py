"""What a rule of the catalogue is: one class that knows one thing that can go wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from torchferry.records import Case, Diagnosis, Repair, Severity, Stage


class Rule:
    """A diagnosis: the docstring is its page, `detect` finds it, `repairs` offers what mends it.

    The first line of the docstring is the title, a statement of the bad thing without a full stop. The sections
    `## What happened`, `## Do instead` and, where repairs are offered, `## Repair safety` follow.
    Beside the class stand `bad()` and `good()`: tiny Jobs that a test runs, and that the page shows as calls of `torchferry`;
    a Case for what fails outside of the pipeline.
    """

    code: ClassVar[str]
    stage: ClassVar[Stage]
    severity: ClassVar[Severity] = "error"
    since: ClassVar[str] = "0.1"
    also: ClassVar[frozenset[str]] = frozenset()  # codes that bad() may raise beside this one
    last_resort: ClassVar[bool] = False  # asked only when a stage failed and no other rule can say why
    explains: ClassVar[frozenset[str]] = frozenset()  # codes that are mere consequences when this one is found

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        """Yield a diagnosis for each place where this went wrong."""
        raise NotImplementedError

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        """Yield what would mend it, best first; nothing when the user must decide."""
        return iter(())

    def premise(self) -> AbstractContextManager[Any]:
        """Give what must hold of the machine for the examples to be bad and good, where not every machine has it."""
        return nullcontext()

    @classmethod
    def slug(cls) -> str:
        """Return the rule's name in kebab case: that of its file."""
        return cls.__module__.rsplit(".", 1)[-1].replace("_", "-")

    @classmethod
    def title(cls) -> str:
        """Return the first line of the page."""
        return inspect.cleandoc(cls.__doc__ or "").split("\n", 1)[0].rstrip(".")

    @classmethod
    def page(cls) -> str:
        """Return the page behind the code, without its title."""
        return inspect.cleandoc(cls.__doc__ or "").partition("\n")[2].strip()
