"""INP900: the rule of last resort of stage 1."""

from __future__ import annotations

from torchferry.catalogue.unexplained import Unexplained
from torchferry.records import Job


class ExampleNotUnderstood(Unexplained):
    """The example could not be bound to the model, for a reason that no rule knows.

    ## What happened
    Before anything is converted, the example call is bound to the parameters of `forward` and the eager model is run on it.
    Something in that went wrong which none of the rules recognises.

    ## Do instead
    Call the model with the same arguments in plain PyTorch. If that works, the fault is torchferry's: please report it.
    """

    code, stage, severity, since = "INP900", "inputs", "error", "0.1"
    doing = "binding the example"


def bad() -> Job:
    import torch

    class Stubborn(torch.nn.Module):
        def forward(self, x):
            return x

        def __getattribute__(self, name):
            if name == "forward":
                raise PermissionError("nobody may look at this forward")
            return super().__getattribute__(name)

    return Job(Stubborn(), (torch.ones(2, 3),))


def good() -> Job:
    import torch

    class Open(torch.nn.Module):
        def forward(self, x):
            return x * 2

    return Job(Open(), (torch.ones(2, 3),))
