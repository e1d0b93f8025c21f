"""INP005."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import inputs_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.foreign.torch_messages import wants_another_device
from torchferry.records import Case, Diagnosis, Job, Location


class InputOnOtherDevice(Rule):
    """The example is on another device than the model

    ## What happened
    The model's weights and the example are on different devices, so the model refuses its own example.

    ## Do instead
    Put both on the CPU for the export: `model.cpu()` and `x.cpu()`. The file runs wherever its runtime does.
    """

    code, stage = "INP005", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        fault = clues.failed_call(case)
        if fault is None or not wants_another_device(fault.text):
            return
        example = clues.failed_example(case)
        home = example.device or "cpu"
        away = [i for i in example.inputs if i.device != home]
        named = ", ".join(f"`{i.name}` is on {i.device}" for i in away) or "part of the example is elsewhere"
        place = clues.user_line(fault)
        if home == "meta":
            yield Diagnosis(
                self.code,
                "the model is on the meta device, which has sizes and no values: it has no weights to be exported",
                'make room for them with `model.to_empty(device="cpu")`, then load them with `model.load_state_dict(...)`',
                place,
                (f"{fault.type_name}: {fault.line[:240]}",),
            )
            return
        yield Diagnosis(
            self.code,
            f"{named}, but the model is on {home}",
            "put both on the CPU for the export: `model.cpu()` and `.cpu()` on each example tensor",
            Location(place.file, place.line, input_name=away[0].name if away else None),
            (f"{fault.type_name}: {fault.line[:240]}",),
        )


def bad() -> Job:
    """An example that was never given values: it is on the meta device."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    return Job(Model().eval(), (torch.rand(2, 4, device="meta"),))


def good() -> Job:
    """The same on the CPU."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    return Job(Model().eval(), (torch.rand(2, 4),))
