"""CAP010."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class RandomNumbersFromPython(Rule):
    """Forward draws random numbers from Python or numpy

    ## What happened
    `random.random()` and `np.random.rand()` run once, while the model is captured; the file keeps what they drew, for every
    input and for ever. Eager draws anew in each call, so no file can be equal to it.

    ## Do instead
    Draw only while training (`if self.training`), draw with torch (`torch.rand`), or take the noise as an input.
    """

    code, stage = "CAP010", "capture"
    explains = frozenset({"NUM005", "NUM006"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.HostRandom):
            yield Diagnosis(
                self.code,
                f"`{finding.function}()` is drawn once, during the capture, and would be frozen into the file",
                "guard it with `if self.training`, draw with torch, or take the random numbers as an input",
                clues.place(finding),
            )


def bad() -> Job:
    """Layers dropped at random, in eval too."""
    import random

    import torch

    class Dropping(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if random.random() < 0.5 else x

    return Job(Dropping().eval(), (torch.rand(2, 3),))


def good() -> Job:
    """Only while training."""
    import random

    import torch

    class Dropping(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if self.training and random.random() < 0.5 else x

    return Job(Dropping().eval(), (torch.rand(2, 3),))
