"""CAP013."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.foreign.torch_messages import leaves_torch
from torchferry.records import Case, Diagnosis, Job


class NumpyInForward(Rule):
    """Forward hands a tensor to numpy, or to other code outside torch

    ## What happened
    numpy, scipy and the like compute on real memory. During a capture there is none, and what they compute could not be
    in the graph anyway.

    ## Do instead
    Use the torch function of the same name (`np.clip` is `torch.clamp`, `np.percentile` is `torch.quantile`), or move the step
    before or after the model.
    """

    code, stage = "CAP013", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for number, finding in enumerate(clues.stopped(case)):
            if leaves_torch(finding.said) or (number == 0 and clues.raised(case, leaves_torch)):
                yield Diagnosis(
                    self.code,
                    f"`{finding.code}` takes a tensor out of torch, into numpy or other foreign code",
                    "use the torch function of the same name, or move this step out of the model",
                    clues.place(finding),
                    (finding.text,),
                )


def bad() -> Job:
    """A fit by numpy."""
    import numpy as np
    import torch

    class Fitted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            slope = np.polyfit(np.arange(4), x.detach().numpy(), 1)[0]
            return x * torch.from_numpy(np.asarray(slope))

    return Job(Fitted().eval(), (torch.rand(4),))


def good() -> Job:
    """The same in torch."""
    import torch

    class Fitted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            steps = torch.arange(4, dtype=x.dtype) - 1.5
            return x * ((steps * x).sum() / 5)

    return Job(Fitted().eval(), (torch.rand(4),))
