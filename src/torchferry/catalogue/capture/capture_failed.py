"""CAP900: the rule of last resort of stage 2."""

from __future__ import annotations

from torchferry.catalogue.unexplained import Unexplained
from torchferry.records import Job


class CaptureFailed(Unexplained):
    """The model could not be captured as a graph, for a reason that no rule knows.

    ## What happened
    Every way of capturing the model was tried and none succeeded; the reasons are kept in the evidence.

    ## Do instead
    Look at the line named in the diagnosis: capture runs `forward` on stand-ins for tensors that have a shape but no values,
    so code which insists on real tensors, or hands them to another library, cannot be followed.
    """

    code, stage, severity, since = "CAP900", "capture", "error", "0.1"
    doing = "capturing the model"


def bad() -> Job:
    import torch

    class Purist(torch.nn.Module):
        def forward(self, x):
            if type(x) is not torch.Tensor:
                raise TypeError("I was promised a real tensor")
            return x * 2

    return Job(Purist(), (torch.ones(2, 3),))


def good() -> Job:
    import torch

    class Relaxed(torch.nn.Module):
        def forward(self, x):
            if not isinstance(x, torch.Tensor):
                raise TypeError("this wants a tensor")
            return x * 2

    return Job(Relaxed(), (torch.ones(2, 3),))
