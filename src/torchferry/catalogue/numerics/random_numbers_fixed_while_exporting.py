"""NUM005: eager draws anew at every call; the file repeats itself."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class RandomNumbersFixedWhileExporting(Rule):
    """The model draws random numbers, and the file always gives the same ones.

    ## What happened
    Called with two seeds, the model answered differently, while the file gives the same answer every time: the numbers
    drawn while exporting, or none at all, are fixed in it. Dropout left on, Python's `random` and `numpy.random` are the
    usual sources.

    ## Do instead
    Call `model.eval()` before exporting, and pass `training=self.training` to `F.dropout`. Where randomness is meant, take
    the random numbers as an input of the model.
    """

    code, stage, severity, since = "NUM005", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.RandomOutputFrozen):
            outputs = ", ".join(f"`{o}`" for o in finding.outputs)
            code = f" in `{finding.code}`" if finding.code else ""
            yield Diagnosis(
                self.code,
                f"{outputs} depends on random numbers drawn{code}, and the file always gives the same",
                "call `model.eval()` first" if finding.training else "take the random numbers as an input of the model",
                finding.location or Location(),
            )


def bad() -> Job:
    import random
    import tempfile
    from pathlib import Path

    import torch

    class Jitter(torch.nn.Module):
        def forward(self, x):
            return x * random.random()

    path = Path(tempfile.mkdtemp()) / "jitter.onnx"
    example = (torch.randn(2, 4),)
    torch.onnx.export(Jitter(), example, str(path), dynamo=False, input_names=["x"])
    return Job(Jitter().eval(), example, onnx=path)


def good() -> Job:
    import torch

    class Jitter(torch.nn.Module):
        def forward(self, x, scale):
            return x * scale

    return Job(Jitter().eval(), (torch.randn(2, 4), torch.rand(1)))
