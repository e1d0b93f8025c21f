"""INP012."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class OutputLeftOut(Rule):
    """An output that is no tensor is not in the file

    ## What happened
    The model returns, beside its tensors, something that no file can give: a text, a function, an object. The file gives
    the tensors, under their own names.

    ## Do instead
    Return the number behind it (a class id instead of its name) and look it up outside of the model.
    """

    code, stage, severity = "INP012", "inputs", "warning"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputLeftOut):
            yield Diagnosis(
                self.code,
                f"the output `{finding.output}` ({finding.given}) is no tensor and is not in the file",
                "return a number for it and look the meaning up outside of the model",
                finding.location or Location(),
            )


def bad() -> Job:
    """A name beside the numbers."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, object]:
            return {"doubled": x * 2, "kind": "doubling"}

    return Job(Model(), (torch.ones(2, 4),))


def good() -> Job:
    """The numbers alone."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"doubled": x * 2}

    return Job(Model(), (torch.ones(2, 4),))
