"""CAP005."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class LookupByTensorValue(Rule):
    """A Python list or dict is looked up by the value of a tensor

    ## What happened
    `self.heads[int(task)]` needs the number in a tensor, and a capture has none. What the list holds (layers, words) is not
    in the graph, only what they compute.

    ## Do instead
    Compute all candidates and pick one: `torch.stack([head(h) for head in self.heads])[task]`. Text cannot be in a graph at
    all: return the index and look up the label outside.

    ## Repair safety
    Safe: everything from the lookup to the return is done for each item, and the one at the index is taken.
    """

    code, stage = "CAP005", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "lookup"):
            if clues.pinned(finding):
                continue
            yield Diagnosis(
                self.code,
                f"`{finding.code}` looks something up by the value of a tensor",
                "compute all candidates and pick one with the index"
                + (
                    ""
                    if finding.cleared
                    else "; text and other Python values cannot be in a graph: return the index and look it up outside"
                ),
                clues.place(finding),
                (clues.WHY, finding.text),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"the lookup in line {found.location.line} done for every item, and one taken")


def bad() -> Job:
    """A head chosen by a task number."""
    import torch

    class Heads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = torch.nn.ModuleList(torch.nn.Linear(4, 2) for _ in range(3))

        def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
            head = self.heads[int(task)]
            return head(x)

    return Job(Heads().eval(), (torch.rand(2, 4), torch.tensor(1)))


def good() -> Job:
    """All heads, and one taken."""
    import torch

    class Heads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = torch.nn.ModuleList(torch.nn.Linear(4, 2) for _ in range(3))

        def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
            return torch.stack([head(x) for head in self.heads]).index_select(0, task.reshape(1)).squeeze(0)

    return Job(Heads().eval(), (torch.rand(2, 4), torch.tensor(1)))
