"""TRN005."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location


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
        for finding in case.findings("operator-refused"):
            operator, reason = finding.facts["operator"], str(finding.facts["reason"]).splitlines()[0][:200]
            yield Diagnosis(
                self.code,
                f"this use of `{operator}` cannot be translated: {reason}",
                f"call it in a plainer way, or register your own: `torchferry.register_op({operator!r}, decomposition=...)`",
                finding.location or Location(op=operator),
            )


def bad() -> Job:
    """Runs of equal numbers, of a dtype that the translation does not take."""
    import torch

    class Runs(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.unique_consecutive(x)

    return Job(Runs().eval(), (torch.tensor([1, 1, 2, 3, 3], dtype=torch.int16),))


def good() -> Job:
    """The same numbers in a dtype that it takes."""
    import torch

    class Runs(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.unique_consecutive(x)

    return Job(Runs().eval(), (torch.tensor([1, 1, 2, 3, 3]),))
