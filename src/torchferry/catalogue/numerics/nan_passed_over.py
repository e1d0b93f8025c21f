"""NUM014: NaN goes in, and a number comes out."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.edits.translate import PropagateNan
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class NanPassedOver(Rule):
    """A maximum gives NaN in the model and a number in the file.

    ## What happened
    In PyTorch the maximum or minimum of numbers with a NaN among them is NaN; ONNX Runtime's `ReduceMax`, `ReduceMin` and
    `MaxPool` pass over it. An export of a model without weights, a plain function, mends this; elsewhere it is told.

    ## Do instead
    Nothing: the repair adds the test for NaN to the file. If NaN never occurs, a file without it is a little faster.

    ## Repair safety
    Safe: the file gives NaN where the model does, and the same numbers elsewhere.
    """

    code, stage, severity, since = "NUM014", "verify", "warning", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.NanSwallowed):
            seen = finding.seen
            yield diagnosis(
                self.code,
                finding,
                f"{output(seen)} is a number where the model gives NaN: {seen.words}",
                "let the file pass NaN on, or replace NaN before the maximum",
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield Repair(self.code, "pass NaN on in maxima and minima", PropagateNan())


def bad() -> Job:
    import torch

    class Peak(torch.nn.Module):
        def forward(self, x):
            return x.amax(-1)

    return Job(Peak().eval(), (torch.randn(2, 4),))


def good() -> Job:
    import torch

    class Peak(torch.nn.Module):
        def forward(self, x):
            return x.nan_to_num().amax(-1)

    return Job(Peak().eval(), (torch.randn(2, 4),))
