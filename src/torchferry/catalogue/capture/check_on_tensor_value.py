"""CAP002."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class CheckOnTensorValue(Rule):
    """A check in forward reads the value of a tensor

    ## What happened
    `assert`, or code that only raises, prints or warns, looks at values, which a capture does not have. A graph cannot
    raise anyway: the check belongs to the caller.

    ## Do instead
    Check the inputs before the call, or leave the check out of `forward`; `torch._check` may state what always holds.

    ## Repair safety
    Safe for every input that passes the check: the outputs are the same. An input that eager refuses is no longer refused.
    """

    code, stage = "CAP002", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "check"):
            yield Diagnosis(
                self.code,
                f"`{finding.code}` checks or prints the value of a tensor",
                "check the inputs before the call; a graph cannot raise or print",
                clues.place(finding),
                (clues.WHY, finding.text),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(
            case, found, f"the check in line {found.location.line} left out: inputs that fail it are not refused"
        )


def bad() -> Job:
    """A guard against NaN."""
    import torch

    class Guarded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if torch.isnan(x).any():
                raise ValueError("NaN in the input")
            return self.fc(x)

    return Job(Guarded().eval(), (torch.rand(3, 4),))


def good() -> Job:
    """The same, with the check left to the caller."""
    import torch

    return Job(torch.nn.Linear(4, 2).eval(), (torch.rand(3, 4),))
