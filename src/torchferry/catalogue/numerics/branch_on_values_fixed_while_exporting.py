"""NUM010: an `if` on values was decided once."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class BranchOnValuesFixedWhileExporting(Rule):
    """The file always goes the way that the example went, whatever the values are.

    ## What happened
    `forward` looks at the values of a tensor and goes one way or another (`if mask.all()`). While exporting it went the
    example's way, and only that way is in the file. For inputs that go the other way in PyTorch the file is wrong.

    ## Do instead
    Compute both ways and choose with `torch.where`, or use `torch.cond`. A shortcut (`if mask.all(): skip`) can be left out.
    """

    code, stage, severity, since = "NUM010", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputDiffers):
            seen = finding.seen
            if seen.blame.cause == "branch-frozen" and seen.what != "count":
                yield diagnosis(
                    self.code,
                    finding,
                    f"`{seen.blame.code}` was decided with the example; with values of the kind `{seen.values}`"
                    f" {output(seen)} is wrong: {seen.words}",
                    "choose with `torch.where` or `torch.cond`, or leave the shortcut out",
                )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Pool(torch.nn.Module):
        def forward(self, x, mask):
            if not mask.all():
                x = x.masked_fill(mask[..., None] == 0, 0.0)
            return x.sum(1)

    path = Path(tempfile.mkdtemp()) / "pool.onnx"
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    torch.onnx.export(Pool(), example, str(path), dynamo=False, input_names=["x", "mask"])
    return Job(Pool(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Pool(torch.nn.Module):
        def forward(self, x, mask):
            return x.masked_fill(mask[..., None] == 0, 0.0).sum(1)

    path = Path(tempfile.mkdtemp()) / "pool.onnx"
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    torch.onnx.export(Pool(), example, str(path), dynamo=False, input_names=["x", "mask"])
    return Job(Pool(), example, onnx=path)
