"""CAP061."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class ListFromTensor(Rule):
    """A list is made of the numbers in a tensor whose length depends on values

    ## What happened
    `counts = torch.bincount(ids).tolist()` makes a Python list, and a capture knows neither its numbers nor how many there
    are.

    ## Do instead
    Leave out `.tolist()`: `counts[e]` reads the same number from the tensor.

    ## Repair safety
    Safe: the numbers are left a tensor, and the result is compared with the model as it was written. Only where single numbers
    are read from the list: one that is joined, repeated or handed on is left as it is.
    """

    code, stage = "CAP061", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "number"):
            yield Diagnosis(
                self.code,
                f"`{finding.code}` makes a list whose length depends on values",
                "leave out `.tolist()`, and read the numbers from the tensor",
                clues.place(finding),
                (clues.WHY, finding.text),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"the numbers in line {found.location.line} left a tensor")


def bad() -> Job:
    """Counts of ids, of which two are read."""
    import torch

    class Counted(torch.nn.Module):
        def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            counts = torch.bincount(ids, minlength=2).tolist()
            return x * counts[0] - counts[1]

    return Job(Counted().eval(), (torch.rand(2, 3), torch.tensor([1, 0, 1])))


def good() -> Job:
    """The same, read from the tensor."""
    import torch

    class Counted(torch.nn.Module):
        def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            counts = torch.bincount(ids, minlength=2)
            return x * counts[0] - counts[1]

    return Job(Counted().eval(), (torch.rand(2, 3), torch.tensor([1, 0, 1])))
