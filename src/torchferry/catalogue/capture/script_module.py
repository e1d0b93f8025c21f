"""CAP058."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareScript
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class ScriptModule(Rule):
    """A part of the model is compiled TorchScript

    ## What happened
    `torch.jit.script`, `torch.jit.trace` and `torch.jit.load` give compiled modules. torch.export cannot look into them, and
    a trace of them follows the one path that the example takes.

    ## Do instead
    Export the original module, before it was compiled, if you have it.

    ## Repair safety
    Safe: the compiled graph is run in Python, node by node, while the model is captured, with the same weights. Where a
    branch reads the value of a tensor both sides are computed and one is chosen; checks that only raise are left out.
    """

    code, stage = "CAP058", "capture"
    explains = clues.CONSEQUENCES | {"NUM001", "NUM002"}

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found = case.findings(findings.ScriptPart)
        if found and clues.failed(case):
            kinds = ", ".join(sorted({f"`{f.type}`" for f in found}))
            yield Diagnosis(
                self.code,
                f"{clues.listed(found)} ({kinds}) is compiled TorchScript, into which a capture cannot look",
                "export the module that it was compiled from, or let torchferry run the compiled graph in Python",
                clues.first(found),
                tuple(line[:200] for line in clues.texts(case).splitlines()[:1]),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield Repair(self.code, "compiled parts run node by node", PrepareScript())


def bad() -> Job:
    """A compiled model that asks for a size."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.linear(x)
            if y.shape[0] > 1000:
                y = y * 2
            return torch.relu(y)

    torch.manual_seed(0)
    return Job(torch.jit.script(Block().eval()), (torch.rand(2, 3),))


def good() -> Job:
    """The model before it was compiled."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.linear(x))

    torch.manual_seed(0)
    return Job(Block().eval(), (torch.rand(2, 3),))
