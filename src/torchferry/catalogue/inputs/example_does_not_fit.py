"""INP006."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ExampleDoesNotFit(Rule):
    """An example that must work cannot be fed to the file

    ## What happened
    A file takes a fixed number of tensors, each of one dtype and one number of axes; everything else was fixed when it was
    made. One of the `examples` has another dtype, number of axes, length of a list, text, flag, or a None where the first
    example has a tensor (or the other way round).

    ## Do instead
    Bring the arguments into one form before the model: cast them, pad lists to one length, pass a tensor instead of None.
    For choices that change what is computed (a flag, a mode), export one file for each.
    """

    code, stage = "INP006", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ExampleDoesNotFit):
            named = f"`{finding.argument}`" if finding.argument else "an argument"
            yield Diagnosis(
                self.code,
                f"example {finding.example} does not fit the file, at {named}: {finding.words}",
                "bring the arguments into one form before they are sent (cast, pad, one file for each choice)",
                finding.location or Location(),
            )


def bad() -> Job:
    """The second example has one axis more."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu()

    return Job(Model(), (torch.rand(2, 4),), examples=(((torch.rand(2, 3, 4),), {}),))


def good() -> Job:
    """All examples have the same number of axes."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu()

    return Job(Model(), (torch.rand(2, 4),), examples=(((torch.rand(3, 4),), {}),))
