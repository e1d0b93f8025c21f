"""INP008."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class AskedAxisDoesNotMove(Rule):
    """An axis that was asked to move is fixed by the model itself

    ## What happened
    `dynamic_axes`, `dynamic_shapes` or the examples ask for a size that varies, but the PyTorch model runs only with the
    size of the example: a layer was made for that many channels or features.

    ## Do instead
    Ask only for axes that the model lets vary: usually the batch, the length, height and width.
    """

    code, stage = "INP008", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.AskedAxisDoesNotMove):
            place = f"`{finding.input}[{finding.axis}]`"
            who = "the examples vary" if finding.from_examples else "you asked to move"
            why = f": {finding.why}" if finding.why else ""
            yield Diagnosis(
                self.code,
                f"{who} {place}, but the model runs only with {finding.size} there{why}",
                f"leave axis {finding.axis} of `{finding.input}` out, or change the model",
                finding.location or Location(),
            )


def bad() -> Job:
    """The number of features of a linear layer."""
    import torch

    return Job(torch.nn.Linear(4, 2).eval(), (torch.rand(2, 4),), dynamic_axes={"input": {1: "features"}})


def good() -> Job:
    """The batch."""
    import torch

    return Job(torch.nn.Linear(4, 2).eval(), (torch.rand(2, 4),), dynamic_axes={"input": {0: "batch"}})
