"""CAP017."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class SizeFixedByCode(Rule):
    """A line turns a size that moves into a plain number

    ## What happened
    Python's own functions (`range`, `list`, indexing, a cache keyed by size) and some of torch's want a plain number where the
    size of the input stands. The capture would fix the file to the example's size, which is not what was asked for.

    ## Do instead
    Keep the size in torch: `torch.arange(n)` instead of `list(range(n))`, a mask instead of a Python index. Or leave the
    dimension fixed: `dynamic_shapes` without it. Where the line has a form that can be rewritten so, that is tried first.
    """

    code, stage = "CAP017", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "none", "lookup", "list", "branch", "ternary", "exit"):
            if clues.pinned(finding):
                yield Diagnosis(
                    self.code,
                    f"`{finding.code}` fixes a size that should move",
                    "keep the size in torch operations, or leave this dimension fixed",
                    clues.place(finding),
                    (finding.text,),
                )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"line {found.location.line} rewritten so that the size can move")


def bad() -> Job:
    """A sum over Python's range."""
    import torch

    class Weighted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * sum(range(x.shape[0]))

    return Job(Weighted().eval(), (torch.rand(5),))


def good() -> Job:
    """The same in torch."""
    import torch

    class Weighted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (x.shape[0] * (x.shape[0] - 1) // 2)

    return Job(Weighted().eval(), (torch.rand(5),))
