"""TRN001."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class OperatorWithoutOnnx(Rule):
    """The model uses an operator that has no translation to ONNX

    ## What happened
    Neither ONNX nor torchferry's operator library has a counterpart of this operator, and torch knows no way to write it in
    simpler ones. All such operators of the model are listed at once, each with the line that uses it.

    ## Do instead
    Replace the operator by ones that exist (`torch.linalg.eigvalsh` instead of `eigvals` for a symmetric matrix), or move it
    out of the exported part. If you know how to compute it, register that once:
    `torchferry.register_op("aten::linalg_eig", decomposition=my_function)`.
    """

    code, stage = "TRN001", "translate"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OperatorWithoutOnnx):
            operator, dtype = finding.operator, finding.dtype
            yield Diagnosis(
                self.code,
                f"`{operator}` has no translation to ONNX" + (f" (used on {dtype})" if dtype else ""),
                f"replace it, or register how to compute it: `torchferry.register_op({operator!r}, decomposition=...)`",
                finding.location or Location(op=operator),
                (f"schema: {finding.schema}",) if finding.schema else (),
            )


def bad() -> Job:
    """Eigenvalues of a matrix that need not be symmetric."""
    import torch

    class Spectrum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(x).real

    return Job(Spectrum().eval(), (torch.rand(3, 3),))


def good() -> Job:
    """The matrix is symmetric, and the call says so."""
    import torch

    class Spectrum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(x + x.mT)

    return Job(Spectrum().eval(), (torch.rand(3, 3),))
