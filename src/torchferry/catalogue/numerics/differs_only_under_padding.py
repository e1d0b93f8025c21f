"""NUM008: a note: what lies under padding may differ."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class DiffersOnlyUnderPadding(Rule):
    """Outputs differ only at padded positions.

    ## What happened
    With a padded batch, the positions that the mask marks as real agree with the model, and only those under padding do
    not. Attention rows in which every key is masked have no defined value: PyTorch's kernels, its own reference path and
    ONNX Runtime each give another one.

    ## Do instead
    Nothing, as long as what is computed from padded positions is thrown away, as it nearly always is. If it is not (a plain
    mean over all positions), mask it out in the model.
    """

    code, stage, severity, since = "NUM008", "verify", "note", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.PaddingOnly):
            yield diagnosis(
                self.code,
                finding,
                f"{output(finding.seen)} differs at padded positions only; all positions that the mask marks as real agree",
                "nothing to do unless padded positions are used",
            )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Attends(torch.nn.Module):
        """Padded tokens see none, and so the mean of all; or all that are real."""

        def __init__(self, keys):
            super().__init__()
            self.keys = keys

        def forward(self, x, attention_mask):
            on = attention_mask[:, None, :] if self.keys else attention_mask[:, None, :] * attention_mask[:, :, None]
            return (x @ x.transpose(1, 2)).masked_fill(on == 0, -1e9).softmax(-1) @ x

    path = Path(tempfile.mkdtemp()) / "attends.onnx"
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    torch.onnx.export(Attends(True), example, str(path), dynamo=False, input_names=["x", "attention_mask"])
    return Job(Attends(False), example, onnx=path)


def good() -> Job:
    import torch

    class Half(torch.nn.Module):
        def forward(self, x, attention_mask):
            return torch.where(attention_mask[..., None] > 0, x * 2, torch.zeros_like(x))

    return Job(Half(), (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64)))
