"""INP013."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ComplexOutputAsPairs(Rule):
    """A complex output is given as pairs of real numbers

    ## What happened
    ONNX Runtime has no complex tensors. An output that is complex in PyTorch has one more axis of size 2 in the file: the
    real and the imaginary part, as `torch.view_as_real` gives them.

    ## Do instead
    Nothing, or put it together again after the run: `out[..., 0] + 1j * out[..., 1]`.
    """

    code, stage, severity = "INP013", "inputs", "note"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ComplexOutput):
            name = finding.output
            words = f"`{name}` is complex; the file gives it with a last axis of 2, real and imaginary part"
            yield Diagnosis(
                self.code, words, f"`{name}[..., 0] + 1j * {name}[..., 1]` puts it together again", finding.location or Location()
            )


def bad() -> Job:
    """A point on the unit circle."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.complex(x.cos(), x.sin())

    return Job(Model(), (torch.rand(2, 4),))


def good() -> Job:
    """The same as two real numbers."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x.cos(), x.sin()], -1)

    return Job(Model(), (torch.rand(2, 4),))
