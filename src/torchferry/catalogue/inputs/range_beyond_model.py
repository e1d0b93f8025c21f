"""INP009."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class RangeBeyondModel(Rule):
    """A range was asked for that the model itself does not take

    ## What happened
    `ranges` (or a `Dim` with min and max) asks for sizes at which the PyTorch model raises: more positions than its table
    has rows, fewer samples than a kernel needs. No file can do better.

    ## Do instead
    Ask for the range that the model has, which the message names, or give the model a larger table.
    """

    code, stage = "INP009", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.RangeBeyondModel):
            why = f": {finding.why}" if finding.why else ""
            yield Diagnosis(
                self.code,
                f"`{finding.dim}` was asked to be {_span(finding.asked)}, but the model takes {_span(finding.model)}{why}",
                f"ask for ranges={{'{finding.dim}': ({finding.model[0]}, {finding.model[1]})}} or less",
            )


def _span(ends: tuple[int, int | None]) -> str:
    return f"{ends[0]}..{'' if ends[1] is None else ends[1]}"


def bad() -> Job:
    """64 tokens for 16 positions."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = torch.nn.Embedding(20, 4), torch.nn.Embedding(16, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.words(ids) + self.positions(torch.arange(ids.shape[1]))

    return Job(Model().eval(), (torch.randint(0, 20, (2, 5)),), ranges={"sequence_length": (1, 64)})


def good() -> Job:
    """16 tokens for 16 positions."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = torch.nn.Embedding(20, 4), torch.nn.Embedding(16, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.words(ids) + self.positions(torch.arange(ids.shape[1]))

    return Job(Model().eval(), (torch.randint(0, 20, (2, 5)),), ranges={"sequence_length": (1, 16)})
