"""CAP001."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class BranchOnTensorValue(Rule):
    """A Python branch reads the value of a tensor

    ## What happened
    Capture runs the model on stand-in tensors that have a shape but no values, so Python cannot know which way an `if`,
    a conditional expression, or a `break` goes. An ONNX graph has no Python in it: both ways must be in the graph.

    ## Do instead
    Use `torch.cond(condition, then, otherwise, operands)` when both sides give tensors of the same shape and dtype, or
    compute both sides and choose with `torch.where(condition, a, b)`. A shortcut that only saves work can go.

    ## Repair safety
    Safe: the branch is rewritten as `torch.cond`, which becomes an ONNX `If`, or with both sides and `torch.where`. Where
    the sides differ in more than tensors, each takes along the code up to the return. The source on disk is not touched,
    `result.patch` is the change as a diff, and the result is compared with the model as it was written.
    """

    code, stage = "CAP001", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "branch", "ternary", "exit", "truth"):
            if clues.pinned(finding):
                continue
            yield Diagnosis(
                self.code,
                f"`{finding.code}` branches on the value of a tensor",
                "use `torch.cond` when both sides give tensors of one shape and dtype; else compute both, and choose with"
                " `torch.where`",
                clues.place(finding),
                (clues.WHY, finding.text),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"the branch in line {found.location.line} put into the graph")


def bad() -> Job:
    """A gate that picks one of two layers by the mean of its input."""
    import torch

    class Gate(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hot, self.cold = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.mean() > 0.25:  # noqa: SIM108  the statement is the point
                y = self.hot(x).relu()
            else:
                y = self.cold(x).tanh()
            return y + 1

    return Job(Gate().eval(), (torch.rand(3, 4),))


def good() -> Job:
    """The same, with both sides computed and one taken."""
    import torch

    class Gate(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hot, self.cold = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.where(x.mean() > 0.25, self.hot(x).relu(), self.cold(x).tanh()) + 1

    return Job(Gate().eval(), (torch.rand(3, 4),))
