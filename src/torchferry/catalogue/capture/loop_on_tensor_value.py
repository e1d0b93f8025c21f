"""CAP003."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Repair


class LoopOnTensorValue(Rule):
    """A Python loop runs until the value of a tensor says stop

    ## What happened
    How often the loop goes round depends on values, which a capture does not have.

    ## Do instead
    Use `torch._higher_order_ops.while_loop(condition, body, carried)`, which becomes an ONNX `Loop`. What is carried from
    round to round must keep its shape and dtype; a list that grows, or a tensor that shrinks, cannot be carried: use a
    tensor of fixed size and a mask, or move the loop out of the model.

    ## Repair safety
    Safe: the loop is rewritten as `while_loop` with the names that it sets, and compared with the model as it was written.
    """

    code, stage = "CAP003", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stops(case, "while"):
            cleared = finding.cleared
            yield Diagnosis(
                self.code,
                f"`{finding.code}` loops on the value or the data-dependent size of a tensor",
                "use `torch._higher_order_ops.while_loop`"
                + (
                    ""
                    if cleared
                    else "; what it carries must keep its shape, so use a mask instead of a list or a shrinking tensor,"
                    " or move the loop out of the model"
                ),
                clues.place(finding),
                (clues.WHY, finding.text),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield from clues.rewrites(case, found, f"the loop in line {found.location.line} as `while_loop`")


def bad() -> Job:
    """A fixed point, iterated until it moves no more."""
    import torch

    class FixedPoint(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z, change = torch.zeros_like(x), torch.tensor(1.0)
            while change > 1e-4:
                new = torch.tanh(z * 0.5 + x)
                change = (new - z).pow(2).sum()
                z = new
            return z

    return Job(FixedPoint().eval(), (torch.rand(2, 3),))


def good() -> Job:
    """The same with a fixed number of rounds."""
    import torch

    class FixedPoint(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = torch.zeros_like(x)
            for _ in range(4):
                z = torch.tanh(z * 0.5 + x)
            return z

    return Job(FixedPoint().eval(), (torch.rand(2, 3),))
