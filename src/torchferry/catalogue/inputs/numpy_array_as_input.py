"""INP010."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class NumpyArrayAsInput(Rule):
    """A numpy array was taken as a tensor

    ## What happened
    The example holds a numpy array where a model takes tensors. It was taken as a tensor of the same dtype.

    ## Do instead
    Nothing, if that is what you meant. Mind that numpy's numbers are float64 unless told otherwise.
    """

    code, stage, severity = "INP010", "inputs", "note"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.NumpyArrayTaken):
            name = finding.input
            yield Diagnosis(self.code, f"`{name}` is a numpy array and was taken as a tensor", "", finding.location or Location())


def bad() -> Job:
    """An array for a layer."""
    import numpy
    import torch

    return Job(torch.nn.Linear(4, 2).eval(), (numpy.ones((2, 4), dtype=numpy.float32),))


def good() -> Job:
    """A tensor for a layer."""
    import torch

    return Job(torch.nn.Linear(4, 2).eval(), (torch.ones(2, 4),))
