"""NUM013: the file has other outputs than the model."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class FileOfAnotherModel(Rule):
    """The file does not have the model's outputs.

    ## What happened
    The model gives one number of tensors, the file another. Either the file was made from another model, or outputs were
    dropped or added while exporting.

    ## Do instead
    Give the file that was made from this model, or export again. Outputs that are None, or that depend on a flag, must be
    the same in the call that is compared as in the one that was exported.
    """

    code, stage, severity, since = "NUM013", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputDiffers):
            if finding.seen.what == "count":
                yield diagnosis(
                    self.code,
                    finding,
                    f"the file gives {finding.seen.words}",
                    "give the file that was made from this model, or export again",
                )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Both(torch.nn.Module):
        def forward(self, x):
            return x + 1, x * 2

    path = Path(tempfile.mkdtemp()) / "other.onnx"
    example = (torch.randn(2, 4),)
    torch.onnx.export(torch.nn.Softplus(), example, str(path), dynamo=False, input_names=["x"])
    return Job(Both(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Both(torch.nn.Module):
        def forward(self, x):
            return x + 1, x * 2

    path = Path(tempfile.mkdtemp()) / "both.onnx"
    example = (torch.randn(2, 4),)
    torch.onnx.export(Both(), example, str(path), dynamo=False, input_names=["x"])
    return Job(Both(), example, onnx=path)
