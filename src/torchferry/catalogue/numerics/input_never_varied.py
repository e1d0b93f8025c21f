"""NUM032: an input of which the model took no values but one."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location


class InputNeverVaried(Rule):
    """An input was never varied.

    ## What happened
    The model refuses most inputs that can be made up for it, and in the trials that it did take, this input had the same value
    everywhere: the example's. What the file does with any other value was not seen.

    ## Do instead
    Give `examples=` with several different values that the model takes: rotations that do turn, codes of more than one kind.
    """

    code, stage, severity, since = "NUM032", "verify", "error", "0.2"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings("input-not-varied"):
            name, refused = finding.facts["input"], finding.facts["refused"]
            yield Diagnosis(
                self.code,
                f"input `{name}` had one value in every trial that agrees: the model refused {refused} others",
                f"give `examples` with several values of `{name}` that the model takes",
                Location(input_name=name),
            )


def bad() -> Job:
    return _job([1.0, 0.0])


def good() -> Job:
    return _job([0.6, 0.8])


def _job(second: list[float]) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Turn(torch.nn.Module):
        def forward(self, way, x):
            if not torch.allclose(way.norm(dim=-1), torch.ones(way.shape[0]), atol=1e-4):
                raise ValueError("`way` must be a direction")
            return torch.stack([way[:, 0] * x[:, 0] - way[:, 1] * x[:, 1], way[:, 1] * x[:, 0] + way[:, 0] * x[:, 1]], 1)

    path = Path(tempfile.mkdtemp()) / "turn.onnx"
    example = (torch.tensor([[1.0, 0.0], second]), torch.randn(2, 2))
    torch.onnx.export(Turn(), example, str(path), dynamo=False, input_names=["way", "x"])
    return Job(Turn(), example, onnx=path)
