"""NUM002: right at the example's sizes, wrong at others."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import cause, diagnosis, output, sizes
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class SizeFixedWhileExporting(Rule):
    """The file is right at the example's sizes and wrong at others that it declares.

    ## What happened
    A Python number, an `if` or a loop in `forward` depends on a size. While exporting it was computed once, with the
    example's sizes, and the outcome is fixed in the file; yet the file says that it takes other sizes, and answers there
    with wrong numbers and no error. The line named is where the number is computed, or the `if` or loop itself.

    ## Do instead
    Keep sizes as sizes: `x.shape[1] // 2` instead of `int(x.shape[1] * 0.5)`, a tensor operation instead of
    `math.sqrt(x.shape[1])`, a reshape instead of a Python loop over pieces. `torchferry.export` repairs many of these by
    itself. Where the model is only ever used at one size, export with that size fixed.
    """

    code, stage, severity, since = "NUM002", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.SizeBaked):
            seen = finding.seen
            yield diagnosis(
                self.code,
                finding,
                f"{output(seen)} is wrong at {sizes(seen)}: {seen.words}; {cause(seen)}",
                "keep the size symbolic in `forward`, or export with this size fixed",
            )


def bad() -> Job:
    import math
    import tempfile
    from pathlib import Path

    import torch

    class Affinity(torch.nn.Module):
        def forward(self, x):
            return (x @ x.transpose(1, 2)) / math.sqrt(x.shape[1])

    path = Path(tempfile.mkdtemp()) / "affinity.onnx"
    example = (torch.randn(2, 8, 4),)
    axes = {"x": {1: "length"}}
    torch.onnx.export(Affinity(), example, str(path), dynamo=False, input_names=["x"], dynamic_axes=axes)
    return Job(Affinity(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Affinity(torch.nn.Module):
        def forward(self, x):
            return (x @ x.transpose(1, 2)) / torch.full_like(x[:1, :, :1], 1.0).sum().sqrt()

    path = Path(tempfile.mkdtemp()) / "affinity.onnx"
    example = (torch.randn(2, 8, 4),)
    axes = {"x": {1: "length"}}
    torch.onnx.export(Affinity(), example, str(path), dynamo=False, input_names=["x"], dynamic_axes=axes)
    return Job(Affinity(), example, onnx=path)
