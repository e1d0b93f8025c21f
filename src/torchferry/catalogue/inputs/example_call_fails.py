"""INP001."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import inputs_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.foreign.torch_messages import lacks_device, wants_another_device, wants_another_dtype
from torchferry.records import Case, Diagnosis, Job

RUN_IT = "call `model(*args, **kwargs)` with this example yourself: it has to run before it can be exported"
NO_CUDA = "this machine has no CUDA; let that line make its tensor on the device of an input, as in `device=x.device`"


class ExampleCallFails(Rule):
    """The model raises on its own example

    ## What happened
    Before anything is converted, the model is called as you would call it, with the example that you gave. It raised. The
    place is the innermost line of your code that the exception passed through.

    ## Do instead
    Call `model(*args, **kwargs)` yourself and mend what it says: the example has another shape, number of arguments or
    kind of value than the model takes.
    """

    code, stage = "INP001", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        fault = clues.failed_call(case)
        if fault is None or wants_another_dtype(fault.text) or wants_another_device(fault.text):
            return
        given = ", ".join(f"{i.name}: {i.dtype} {list(i.shape)}" for i in clues.failed_example(case).inputs)
        yield Diagnosis(
            self.code,
            f"the model raises on its own example: {fault.type_name}: {fault.line[:240]}",
            NO_CUDA if any(lacks_device(link.text) for link in fault.chain()) else RUN_IT,
            clues.user_line(fault),
            (f"the example: {given}",) if given else (),
        )


def bad() -> Job:
    """Seven features for a layer that wants four."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    return Job(Model().eval(), (torch.rand(2, 7),))


def good() -> Job:
    """The same with four."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    return Job(Model().eval(), (torch.rand(2, 4),))
