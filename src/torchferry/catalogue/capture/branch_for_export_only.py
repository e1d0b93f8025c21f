"""CAP014."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class BranchForExportOnly(Rule):
    """Forward asks whether it is being exported

    ## What happened
    `torch.onnx.is_in_onnx_export()` and `torch.compiler.is_exporting()` let a model compute something else in the file than in
    eager. The file must be equal to the eager model, so the question was answered with no, as in eager.

    ## Do instead
    Nothing, if the file should do what the model does. If the other branch is what you want to ship, make it a model of its
    own, and export that.
    """

    code, stage, severity = "CAP014", "capture", "note"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ExportFlag):
            yield Diagnosis(
                self.code,
                f"`{finding.flag}()` was answered with False, so that the file computes what the eager model computes",
                "if the branch for the export is what you want, make it a model of its own",
                clues.place(finding),
            )


def bad() -> Job:
    """A shortcut for some other runtime."""
    import torch

    class Head(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if torch.onnx.is_in_onnx_export():
                return x.relu()
            return x.sigmoid()

    return Job(Head().eval(), (torch.rand(2, 3),))


def good() -> Job:
    """The eager computation alone."""
    import torch

    return Job(torch.nn.Sigmoid(), (torch.rand(2, 3),))
