"""CAP004."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class LoopOverMovingDimension(Rule):
    """A Python loop goes over a dimension that moves

    ## What happened
    Capture writes a Python loop out, round by round. A loop over the length of the input would freeze the example's length.

    ## Do instead
    Use `torch._higher_order_ops.scan(step, carried, steps)`, which becomes an ONNX `Scan`; where the rounds do not depend on each
    other, one operation on the whole tensor, or `torch.vmap`. `nn.GRU` and `nn.LSTM` instead of their cells in a loop.

    ## Repair safety
    Safe: the loop is rewritten as `scan`, which carries the names that it sets and stacks what it appends; the result is
    compared with the model as it was written, at other lengths too.
    """

    code, stage = "CAP004", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "for"):
            code = finding.code
            is_loop = "for" in code.replace("(", " ").replace("[", " ").split()
            yield Diagnosis(
                self.code,
                f"`{code}` goes round as often as the example is long, and the file would be fixed to that"
                if is_loop
                else f"`{code}` reads the value of a tensor in every round of the loop around it",
                "use `torch._higher_order_ops.scan`, or one operation on the whole tensor",
                clues.place(finding),
                ("a capture writes a Python loop out, round by round", finding.text),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"the loop in line {found.location.line} for any number of rounds")


def bad() -> Job:
    """A running sum over time."""
    import torch

    class Running(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state, seen = torch.zeros_like(x[:, 0]), []
            for t in range(x.size(1)):
                state = state + x[:, t]
                seen.append(state)
            return torch.stack(seen, 1)

    return Job(Running().eval(), (torch.rand(2, 5, 3),))


def good() -> Job:
    """The same, as one operation on the whole tensor."""
    import torch

    class Running(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.cumsum(1)

    return Job(Running().eval(), (torch.rand(2, 5, 3),))
