"""CAP006."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, Repair


class NumberFromTensor(Rule):
    """Python needs the number in a tensor to go on

    ## What happened
    Code outside torch (a Python function, a size that must be known, a choice of algorithm) asked for the value of a
    tensor, or for a size that depends on values. A capture has neither.

    ## Do instead
    Keep the value a tensor: `x[:, :n]` becomes a mask, `math.log(t.item())` becomes `t.log()`. Where a size must come from a
    value, say what is known about it right after taking it: `n = t.item(); torch._check(n >= 0); torch._check(n <= x.size(1))`.
    A number that only says which element is meant, as in `x[i]`, is left a tensor without being asked: it picks the same one.
    """

    code, stage = "CAP006", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "none", "index"):
            if not clues.pinned(finding):
                yield self._diagnosis(clues.place(finding), finding.code, finding.text)

    def _diagnosis(self, location: Location, code: str, text: str) -> Diagnosis:
        return Diagnosis(
            self.code,
            f"`{code}` needs the value of a tensor, or a size that depends on values",
            f"keep it a tensor; or {_stated(code)}",
            location,
            (clues.WHY, text),
        )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"the elements in line {found.location.line} picked by tensors")


def _stated(code: str) -> str:
    """Return how to say what is known of the number in a line, by the name that it has there."""
    try:
        line = ast.parse(code.strip()).body
    except SyntaxError:
        line = []
    named = isinstance(line[0], ast.Assign) and isinstance(line[0].targets[0], ast.Name) if len(line) == 1 else False
    if not named:
        return "take the number into a variable of its own, and say after it how large it can be, with `torch._check`"
    name = ast.unparse(line[0].targets[0])  # type: ignore[attr-defined]
    return f"say in the next line how large it can be, as in `torch._check({name} <= x.size(1))`"


def bad() -> Job:
    """A Python function that needs a real number."""
    import torch

    class Labelled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * len("x" * int(x.argmax()))

    return Job(Labelled().eval(), (torch.rand(4),))


def good() -> Job:
    """The number kept a tensor."""
    import torch

    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.argmax()

    return Job(Scaled().eval(), (torch.rand(4),))
