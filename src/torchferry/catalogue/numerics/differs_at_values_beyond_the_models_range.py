"""NUM011: a note on NaN, infinity and overflow."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class DiffersAtValuesBeyondTheModelsRange(Rule):
    """Outputs differ for NaN, infinite or absurdly large inputs.

    ## What happened
    An input with NaN, infinity or numbers far from the example's was tried. There the model itself gives NaN or infinity,
    or loses all its digits, and the file gives something else. ONNX Runtime's maximum, for one, passes over NaN.

    ## Do instead
    Nothing, if such inputs do not occur. If they do, clean them before the model runs, in both places.
    """

    code, stage, severity, since = "NUM011", "verify", "note", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.DiffersBeyondRange):
            seen = finding.seen
            yield diagnosis(
                self.code,
                finding,
                f"{output(seen)} differs for `{seen.values}` values, which no model need take: {seen.words}",
                "nothing to do unless such inputs occur",
            )


def bad() -> Job:
    import torch

    class Peak(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return (x * self.scale).amax(-1)

    return Job(Peak().eval(), (torch.randn(2, 4),))


def good() -> Job:
    import torch

    class Total(torch.nn.Module):
        def forward(self, x):
            return x.sum(-1)

    return Job(Total().eval(), (torch.randn(2, 4),))
