"""CAP054."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareGradients
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class GradientInsideForward(Rule):
    """Forward takes a gradient

    ## What happened
    The model differentiates inside forward: forces from an energy, a score from a log density. torch.export records operators
    as they are called, and does not see those that the backward pass runs.

    ## Do instead
    Write the derivative out, if it is simple. Otherwise trace forward together with its backward pass.

    ## Repair safety
    Safe: forward is traced with all that autograd runs, weights as constants, and the graph of that is exported. It is
    compared with the eager model like everything else.
    """

    code, stage = "CAP054", "capture"
    explains = clues.CONSEQUENCES

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found = case.findings(findings.GradientInside)
        if found and not clues.made(case) and clues.failed(case) and not case.job.edits_for(PrepareGradients):
            yield Diagnosis(
                self.code,
                f"`{found[0].code}` takes a gradient inside forward",
                "write the derivative out, or let torchferry trace the backward pass into the graph",
                clues.first(found),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield Repair(self.code, "forward and its backward pass traced into one graph", PrepareGradients())


def bad() -> Job:
    """Forces as the gradient of an energy."""
    import torch

    class Forces(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

        def forward(self, position: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                position = position.detach().requires_grad_(True)
                return -torch.autograd.grad(self.energy(position).sum(), position)[0]

    torch.manual_seed(0)
    return Job(Forces().eval(), (torch.rand(3, 3),))


def good() -> Job:
    """The derivative written out."""
    import torch

    class Forces(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)

        def forward(self, position: torch.Tensor) -> torch.Tensor:
            return -((1 - torch.tanh(self.a(position)) ** 2) * self.b.weight) @ self.a.weight

    torch.manual_seed(0)
    return Job(Forces().eval(), (torch.rand(3, 3),))
