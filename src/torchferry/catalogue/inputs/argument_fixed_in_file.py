"""INP011."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ArgumentFixedInFile(Rule):
    """A Python argument is fixed in the file

    ## What happened
    Numbers, flags and texts among the arguments are not tensors. The file computes what the model computes with the value
    of the example, and has no input for it.

    ## Do instead
    Nothing, if the value never changes. If it does, pass `examples=` in which it differs: a number that varies becomes an
    input of the file. A flag or a text chooses what is computed: export one file for each.
    """

    code, stage, severity = "INP011", "inputs", "note"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ArgumentFixed):
            hint = (
                "pass `examples=` with other values to make it an input" if finding.number else "export one file for each value"
            )
            yield Diagnosis(
                self.code, f"`{finding.argument}={finding.value}` is fixed in the file", hint, finding.location or Location()
            )


def bad() -> Job:
    """A number of places to round to."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, factor: int) -> torch.Tensor:
            return x * factor

    return Job(Model(), (torch.ones(2, 4), 3))


def good() -> Job:
    """The factor as a tensor."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
            return x * factor

    return Job(Model(), (torch.ones(2, 4), torch.tensor(3)))
