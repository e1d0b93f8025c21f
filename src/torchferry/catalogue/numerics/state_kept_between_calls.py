"""NUM004: the model remembers; a file cannot."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class StateKeptBetweenCalls(Rule):
    """The model keeps state between calls, and a file cannot.

    ## What happened
    Called twice with the same input, the model answered differently: `forward` writes to a buffer or an attribute. An ONNX
    file is a function of its inputs; the state stays for ever what it was while exporting, and every call but the first
    would be wrong.

    ## Do instead
    Take the state as an input and return it as an output, and let the caller pass it on from call to call. If the state is
    only bookkeeping (a step counter, running statistics), put the model in `eval()` mode or leave the update out.
    """

    code, stage, severity, since = "NUM004", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.StateChanges):
            held = f"`{finding.state}`" if finding.state else "something"
            outputs = ", ".join(f"`{o}`" for o in finding.outputs)
            code = f": `{finding.code}`" if finding.code else ""
            yield Diagnosis(
                self.code,
                f"the second of two equal calls gives another {outputs}: forward changes {held}{code}",
                "take the state as an input, and return the new state as an output",
                finding.location or Location(),
            )


def bad() -> Job:
    import torch

    class Smoother(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("level", torch.zeros(4))

        def forward(self, x):
            self.level.mul_(0.5).add_(x.mean(0))
            return x + self.level

    return Job(Smoother().eval(), (torch.randn(2, 4),))


def good() -> Job:
    import torch

    class Smoother(torch.nn.Module):
        def forward(self, x, level):
            level = level * 0.5 + x.mean(0)
            return x + level, level

    return Job(Smoother().eval(), (torch.randn(2, 4), torch.zeros(4)))
