"""CAP011."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job


class GeneratorInForward(Rule):
    """Forward draws random numbers from a torch.Generator of its own

    ## What happened
    A generator is a Python object with a state that moves on with each draw. A graph has neither, so the capture stops at it.

    ## Do instead
    Take the random numbers as an input, and let the caller draw them with the generator. Without `generator=` the numbers
    would be drawn in the runtime, by another algorithm.
    """

    code, stage = "CAP011", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stopped(case):
            if "generator" in finding.code:
                yield Diagnosis(
                    self.code,
                    f"`{finding.code}` draws from a torch.Generator, which cannot be in a graph",
                    "make the random numbers an input of forward, drawn by the caller",
                    clues.place(finding),
                    (finding.text,),
                )


def bad() -> Job:
    """A mask from a seeded generator."""
    import torch

    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            generator = torch.Generator().manual_seed(7)
            return x * torch.rand(x.shape, generator=generator)

    return Job(Masked().eval(), (torch.rand(2, 3),))


def good() -> Job:
    """The mask as an input."""
    import torch

    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return x * mask

    return Job(Masked().eval(), (torch.rand(2, 3), torch.rand(2, 3)))
