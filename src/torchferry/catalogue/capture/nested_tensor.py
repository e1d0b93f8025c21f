"""CAP057."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class NestedTensor(Rule):
    """The model uses nested tensors

    ## What happened
    `torch.nested` tensors hold rows of different lengths, for which ONNX has no type and torch.export no stand-in.

    ## Do instead
    Take a padded batch and a mask or the lengths as inputs, and mask what is padded.
    """

    code, stage = "CAP057", "capture"
    explains = clues.CONSEQUENCES

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found = case.findings(findings.NestedTensor)
        if found and not clues.made(case) and clues.failed(case):
            yield Diagnosis(
                self.code,
                f"`{found[0].code}` works on nested tensors, which ONNX does not have",
                "take a padded batch and its mask or lengths instead",
                clues.first(found),
            )


def bad() -> Job:
    """Two sequences in a nested tensor."""
    import torch

    class Ragged(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            rows = torch.nested.nested_tensor([a, b])
            return self.linear(rows).to_padded_tensor(0.0)

    return Job(Ragged().eval(), (torch.rand(2, 3), torch.rand(4, 3)))


def good() -> Job:
    """A padded batch."""
    import torch

    class Padded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.linear(x) * mask.unsqueeze(-1)

    return Job(Padded().eval(), (torch.rand(2, 4, 3), torch.ones(2, 4)))
