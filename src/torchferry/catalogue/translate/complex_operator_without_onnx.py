"""TRN004."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ComplexOperatorWithoutOnnx(Rule):
    """A complex number meets an operator that has no form for real pairs

    ## What happened
    ONNX has no complex numbers. torchferry writes operators on them with their real and imaginary parts; for this one it knows
    no such form (the eigenvalues of a general matrix, for one).

    ## Do instead
    Write the step with real tensors: `torch.view_as_real` before it, real arithmetic on the last axis, and
    `torch.view_as_complex` after it; or use the absolute value and the angle.
    """

    code, stage = "TRN004", "translate"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ComplexOperator):
            operator = finding.operator
            yield Diagnosis(
                self.code,
                f"`{operator}` on {finding.dtype} has no translation to ONNX, which has no complex numbers",
                "compute this step on real tensors (`torch.view_as_real`)",
                finding.location or Location(op=operator),
            )


def bad() -> Job:
    """Eigenvalues of a complex matrix."""
    import torch

    class Spread(torch.nn.Module):
        def forward(self, real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(torch.complex(real, imaginary)).abs()

    return Job(Spread().eval(), (torch.rand(3, 3), torch.rand(3, 3)))


def good() -> Job:
    """An operator that has such a form."""
    import torch

    class Spread(torch.nn.Module):
        def forward(self, real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
            return torch.complex(real, imaginary).exp().abs() + imaginary

    return Job(Spread().eval(), (torch.rand(3, 3), torch.rand(3, 3)))
