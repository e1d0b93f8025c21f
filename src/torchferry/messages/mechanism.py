"""A mechanism: why a tool says some words, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

EXPORT = "torchferry export YOUR_MODULE:MODEL -o {file}"
VERIFY = "torchferry verify YOUR_MODULE:MODEL {file}"
CHECK = "torchferry check {file}"
DOCTOR = "torchferry doctor"

# what stands for a fact that a message does not tell
UNTOLD = {
    "op": "the operator",
    "node": "a node",
    "name": "an input",
    "file": "model.onnx",
    "got": "another size",
    "want": "the size that it was exported with",
    "opset": "the one asked for",
    "package": "a package",
    "part": "a part",
    "line": "that line",
    "kind": "Python number",
    "arch": "this",
    "task": "the task",
    "data": "the weights' file",
    "type": "another type",
    "dim": "a dimension",
    "size": "the example's size",
    "most": "what it knows",
    "runtime": "the other runtime",
}


@dataclass(frozen=True)
class Mechanism:
    """One cause of messages. Named groups of its patterns are the facts that `means` and `do` tell."""

    cause: str  # a few words: "operator has no converter"
    means: str
    do: str
    patterns: tuple[str, ...]
    code: str = ""  # the page of the catalogue
    command: str = ""  # what to run next
    about_export: bool = False  # the words alone are anybody's: something else in the text has to speak of export
    holds: Callable[[Mapping[str, str]], bool] | None = None  # what the facts have to be like

    @cached_property
    def compiled(self) -> tuple[re.Pattern[str], ...]:
        """The patterns, compiled."""
        return tuple(re.compile(p, re.IGNORECASE) for p in self.patterns)

    def facts(self, text: str) -> dict[str, str] | None:
        """Return what a text tells, if it speaks of this cause; None if it does not."""
        for pattern in self.compiled:
            for match in pattern.finditer(text):
                found = {k: v.strip() for k, v in match.groupdict().items() if v and v.strip()}
                if self.holds is None or self.holds(found):
                    return found
        return None
