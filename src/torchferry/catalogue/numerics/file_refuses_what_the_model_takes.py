"""NUM003: eager answers, onnxruntime raises."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import cause, diagnosis, sizes
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class FileRefusesWhatTheModelTakes(Rule):
    """The file fails to run on an input that the model takes and that the file declares.

    ## What happened
    The model answered in PyTorch; the file, given the same input, made ONNX Runtime raise. Usually a size of the example
    is fixed somewhere inside the file (a table, a `Reshape`, a `Split`), while its declared inputs promise that the size
    may move.

    ## Do instead
    Keep sizes symbolic in `forward` (no `int(...)` around a size, no table made for one length), or export with the size
    fixed, so that the file says what it takes.
    """

    code, stage, severity, since = "NUM003", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.FileRefuses):
            seen = finding.seen
            at = f" at {sizes(seen)}" if seen.resized else f" for values of the kind `{seen.values}`"
            why = f"; {cause(seen)}" if seen.blame.cause in ("guard", "branch-frozen", "loop-unrolled", "size-baked") else ""
            yield diagnosis(
                self.code,
                finding,
                f"onnxruntime refuses what the model takes{at}: {seen.words}{why}",
                "keep the size symbolic in `forward`, or export with this size fixed",
            )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Project(torch.nn.Module):
        def forward(self, x):
            n = int(x.shape[1])
            return x @ torch.ones(n, 3)

    path = Path(tempfile.mkdtemp()) / "project.onnx"
    example = (torch.randn(2, 8),)
    torch.onnx.export(Project(), example, str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {1: "length"}})
    return Job(Project(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Project(torch.nn.Module):
        def forward(self, x):
            return x @ torch.ones(x.shape[1], 3)

    path = Path(tempfile.mkdtemp()) / "project.onnx"
    example = (torch.randn(2, 8),)
    torch.onnx.export(Project(), example, str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {1: "length"}})
    return Job(Project(), example, onnx=path)
