"""TRN005."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class UseOfOperatorRefused(Rule):
    """An operator has a translation to ONNX, but not for this use of it

    ## What happened
    The translation exists, and refused the arguments that this call gives it: a dtype, a rank or a mode.

    ## Do instead
    Call the operator in a plainer way, cast its argument, or register your own version of it:
    `torchferry.register_op("aten::name", decomposition=...)`.
    """

    code, stage = "TRN005", "translate"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OperatorRefused):
            operator, reason = finding.operator, finding.reason.splitlines()[0][:200]
            yield Diagnosis(
                self.code,
                f"this use of `{operator}` cannot be translated: {reason}",
                f"call it in a plainer way, or register your own: `torchferry.register_op({operator!r}, decomposition=...)`",
                finding.location or Location(op=operator),
            )


def bad() -> Job:
    """Complex numbers of half precision."""
    import torch

    class Wave(torch.nn.Module):
        def forward(self, real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.complex(real.half(), imaginary.half())).float()

    return Job(Wave().eval(), (torch.rand(2, 8), torch.rand(2, 8)))


def good() -> Job:
    """The same in single precision."""
    import torch

    class Wave(torch.nn.Module):
        def forward(self, real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.complex(real, imaginary))

    return Job(Wave().eval(), (torch.rand(2, 8), torch.rand(2, 8)))
