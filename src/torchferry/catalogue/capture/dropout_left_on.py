"""CAP016."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class DropoutLeftOn(Rule):
    """Functional dropout drops in eval mode too

    ## What happened
    `F.dropout(x)` has `training=True` by default and does not know about `model.eval()`. The eager model drops at random in
    each call, and no file can be equal to that.

    ## Do instead
    Write `F.dropout(x, p, training=self.training)`, or use `nn.Dropout`.
    """

    code, stage = "CAP016", "capture"
    explains = frozenset({"NUM005", "NUM006"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.DropoutOn):
            yield Diagnosis(
                self.code,
                "dropout is on although the model is in eval mode",
                "write `F.dropout(x, p, training=self.training)`, or use `nn.Dropout`",
                clues.place(finding),
            )


def bad() -> Job:
    """F.dropout with its default."""
    import torch

    class Dropping(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(x, 0.5)

    return Job(Dropping().eval(), (torch.rand(4, 3),))


def good() -> Job:
    """Told about the mode."""
    import torch

    class Dropping(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(x, 0.5, training=self.training)

    return Job(Dropping().eval(), (torch.rand(4, 3),))
