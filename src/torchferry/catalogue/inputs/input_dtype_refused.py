"""INP004."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import inputs_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.foreign.torch_messages import wants_another_dtype, wants_indices
from torchferry.records import Case, Diagnosis, Fault, Job, Location, findings


class InputDtypeRefused(Rule):
    """The example has a dtype that the model cannot take

    ## What happened
    An embedding is indexed with integers; a layer of float32 weights takes float32, not float64 and not integers. The
    example has another dtype, so the model refuses its own example.

    ## Do instead
    Make the example as the model will be fed in use: `ids.long()` for indices, `x.float()` for numpy's float64.
    """

    code, stage = "INP004", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        fault = clues.failed_call(case)
        if fault is None or not wants_another_dtype(fault.text):
            return
        suspects, wanted = _suspects(fault, case)
        named = ", ".join(f"`{i.name}` is {i.dtype}" for i in suspects) or "the example has another dtype"
        place = clues.user_line(fault)
        first = suspects[0].name if suspects else None
        yield Diagnosis(
            self.code,
            f"{named}, but the model wants {wanted}",
            f"pass `{first}.{'long' if wanted == 'int64' else 'to(torch.' + wanted + ')'}`".replace(".long`", ".long()`")
            if first
            else "",
            Location(place.file, place.line, input_name=first),
            (f"{fault.type_name}: {fault.line[:240]}",),
        )


def _suspects(fault: Fault, case: Case) -> tuple[list[findings.GivenTensor], str]:
    example = clues.failed_example(case)
    if wants_indices(fault.text):
        return [i for i in example.inputs if i.dtype.startswith(("float", "bfloat", "bool"))], "int64"
    wanted = example.dtype or "float32"
    return [i for i in example.inputs if i.dtype != wanted], wanted


def bad() -> Job:
    """Token ids as floats."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(20, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.emb(ids).sum(1)

    return Job(Model().eval(), (torch.rand(2, 5),))


def bad_float64() -> Job:
    """float64, as numpy makes it, for float32 weights."""
    import torch

    return Job(torch.nn.Linear(4, 2).eval(), (torch.rand(2, 4, dtype=torch.float64),))


def good() -> Job:
    """Token ids as integers."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(20, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.emb(ids).sum(1)

    return Job(Model().eval(), (torch.randint(0, 20, (2, 5)),))
