"""NUM032: an input of which the model took no values but one."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class InputNeverVaried(Rule):
    """An input was never varied.

    ## What happened
    The model refuses most inputs that can be made up for it, and in the trials that it did take, this input had the same value
    everywhere: the example's. What the file does with any other value was not seen.

    ## Do instead
    Give `examples=` with several different values that the model takes: codes of more than one
    kind, numbers with other check digits.
    """

    code, stage, severity, since = "NUM032", "verify", "error", "0.2"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.InputNotVaried):
            name, refused = finding.input, finding.refused
            yield Diagnosis(
                self.code,
                f"input `{name}` had one value in every trial that agrees: the model refused {refused} others",
                f"give `examples` with several values of `{name}` that the model takes",
                Location(input_name=name),
            )


def bad() -> Job:
    return _compared([3, 3])


def good() -> Job:
    return _compared([3, 5])


def _compared(numbers: list[int]) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    def with_check(number: int) -> list[int]:
        return [number, (number * 7919 + 17) % 9973]

    class Account(torch.nn.Module):
        def forward(self, number, x):
            if not torch.equal(number[:, 1], (number[:, 0] * 7919 + 17) % 9973):
                raise ValueError("the check digits of `number` are wrong")
            return x * number[:, :1]

    path = Path(tempfile.mkdtemp()) / "account.onnx"
    example = (torch.tensor([with_check(n) for n in numbers]), torch.randn(2, 2))
    torch.onnx.export(Account(), example, str(path), dynamo=False, input_names=["number", "x"])
    return Job(Account(), example, onnx=path)
