"""CAP056."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareBaked
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class WeightComputedAtEveryCall(Rule):
    """A parametrised weight is computed anew at every call, by operators that stand in the way

    ## What happened
    `torch.nn.utils.parametrizations` (weight_norm, spectral_norm, orthogonal) and your own parametrisations compute a weight
    from others each time it is used. In eval mode the outcome never changes, but the way to it may use operators that cannot
    be converted.

    ## Do instead
    `torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")` before the export.

    ## Repair safety
    Safe: the weights are computed once and kept; the model is in eval mode, where they do not change.
    """

    code, stage = "CAP056", "capture"
    explains = clues.CONSEQUENCES

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found = case.findings(findings.Parametrised)
        if found and not clues.made(case) and clues.failed(case):
            yield Diagnosis(
                self.code,
                f"{clues.listed(found)}: a parametrised weight is computed at every call, and that cannot be converted",
                'remove_parametrizations(layer, "weight") before the export leaves the weight as it is',
                clues.first(found),
                tuple(line[:200] for line in clues.texts(case).splitlines()[:1]),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield Repair(self.code, "parametrised weights computed once", PrepareBaked())


def bad() -> Job:
    """A weight that is the matrix of eigenvectors of another."""
    import torch

    class Rotation(torch.nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eig(weight)[0].real + weight

    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 3)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Rotation())
    return Job(torch.nn.Sequential(layer).eval(), (torch.rand(2, 3),))


def good() -> Job:
    """Weight normalisation is made of plain operators."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3))
    return Job(torch.nn.Sequential(layer).eval(), (torch.rand(2, 3),))
