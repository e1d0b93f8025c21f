"""INP020."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.edits.inputs import Narrow
from torchferry.records import Case, Diagnosis, Job, Location, findings
from torchferry.records.signature import folded


class SizeGivenUp(Rule):
    """The file takes fewer sizes than the model

    ## What happened
    No size was asked for, so every one that moves in the PyTorch model was tried. For this one the file could not be made
    right over the whole range, and no repair helped. Rather than give no file, the export declares what holds: a smaller
    range, or the example's size alone. The file was verified within that, and it refuses sizes beyond it.

    ## Do instead
    Where the other sizes are needed, change the line that is named, or follow the diagnosis that is quoted. Say which sizes
    must hold with `ranges=` or `dynamic_shapes=`: then a narrower file is an error, never a warning.
    """

    code, stage, severity = "INP020", "inputs", "warning"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.SizeGivenUp):
            yield Diagnosis(
                self.code,
                f"{_declared(finding)}, though the model takes {finding.was}",
                f'change the line that is named, or ask for the sizes that must hold: ranges={{"{finding.dim}": (low, high)}}',
                finding.location or Location(),
                (f"{finding.code}: {finding.why}" if finding.code else finding.why,),
            )


def _declared(finding: findings.SizeGivenUp) -> str:
    axes = " = ".join(folded(finding.axes)) or finding.dim
    return f"`{finding.dim}` ({axes}) is " + (f"fixed at {finding.now}" if finding.fixed else f"declared as {finding.now}")


def bad() -> Job:
    """The sum over Python's range is a plain number: the file holds for one size."""
    import torch

    class Weighted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * sum(range(x.shape[0]))

    fixed = Narrow({"batch_size": None}, code="CAP017", why="`sum(range(x.shape[0]))` fixes a size that should move")
    return Job(Weighted().eval(), (torch.rand(5),), edits=(fixed,))


def good() -> Job:
    """The same sum, as arithmetic on the size."""
    import torch

    class Weighted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (x.shape[0] * (x.shape[0] - 1) // 2)

    return Job(Weighted().eval(), (torch.rand(5),))
