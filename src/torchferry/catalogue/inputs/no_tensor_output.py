"""INP021."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class NoTensorOutput(Rule):
    """None of what the model returns is a tensor

    ## What happened
    A file's outputs are tensors. The model returns nothing, or only texts and other objects, so that there is nothing for
    the file to give and nothing to compare.

    ## Do instead
    Return the numbers that the answer is made of (scores, a class id) and look the words up outside of the model. Where
    `forward` only lacks its `return`, add it.
    """

    code, stage = "INP021", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.NoTensorOutput):
            nothing = finding.given.type == "NoneType"
            what = "nothing" if nothing else f"{finding.given} and no tensor"
            number = "return a tensor: the scores, or the number of a class instead of its name"
            yield Diagnosis(
                self.code,
                f"the model returns {what}: the file would have no outputs",
                "end `forward` with a `return` of its tensors" if nothing else number,
                finding.location or Location(),
            )


def bad() -> Job:
    """The name of a class."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> str:
            return "positive" if x.sum() > 0 else "negative"

    return Job(Model(), (torch.ones(2, 4),))


def bad_without_return() -> Job:
    """A forward that ends too early."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            self.last = x * 2

    return Job(Model(), (torch.ones(2, 4),))


def good() -> Job:
    """Its number."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.sum() > 0).long()

    return Job(Model(), (torch.ones(2, 4),))
