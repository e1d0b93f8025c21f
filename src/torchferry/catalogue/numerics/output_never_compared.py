"""NUM031: an output of which no trial compared anything."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class OutputNeverCompared(Rule):
    """Nothing was compared of an output.

    ## What happened
    All trials agree, and yet they say nothing of this output: it was empty in every one, or always the same though the inputs
    go into it, or so small beside what rounding is allowed that any numbers would have agreed. Trials with weights redrawn
    to numbers of order one were made where the file's weights are all known; they did not help.

    ## Do instead
    Give `examples=` for which the output is not empty and not always the same: a picture with something to detect, a text that
    passes the threshold. An output of very small numbers can be given in other units.
    """

    code, stage, severity, since = "NUM031", "verify", "error", "0.2"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputNotCompared):
            yield Diagnosis(self.code, _words(finding), "give `examples` for which this output has something to compare")


def _words(finding: findings.OutputNotCompared) -> str:
    name = f"output `{finding.output}`"
    match finding:
        case findings.OutputEmpty():
            return f"{name} was empty in every trial: nothing was compared"
        case findings.OutputStill(trials=trials):
            return f"{name} was the same in all {trials} trials that agree: any file that gives this would have passed"
        case findings.OutputLost(far=far):
            return f"{name} is lost in what is allowed: the file is off by {far:.0%} of what the output itself varies by"
    raise NotImplementedError(type(finding))


def bad() -> Job:
    return _compared(threshold=100.0)


def good() -> Job:
    return _compared(threshold=0.5)


def _compared(threshold: float) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Detect(torch.nn.Module):
        def forward(self, x):
            return x[x.tanh() > threshold]

    path = Path(tempfile.mkdtemp()) / "detect.onnx"
    example = (torch.randn(6),)
    torch.onnx.export(Detect(), example, str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    return Job(Detect(), example, onnx=path)
