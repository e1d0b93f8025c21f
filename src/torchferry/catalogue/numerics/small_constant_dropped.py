"""NUM012: an optimiser took `+ 1e-8` for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.edits.translate import OptimiserOff
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class SmallConstantDropped(Rule):
    """A small constant of the model is missing from the file.

    ## What happened
    The exporter's optimiser removes `x + c` where |c| is at most 1e-8, and `x * c` and `x / c` where c is within about 1e-5
    of one, as if they did nothing. An epsilon that guards a division by zero is such a constant: rows that are zero or
    constant come out as NaN.

    ## Do instead
    Export with `torchferry.export`, which keeps the constant, or with `optimize=False`; or use an epsilon above 1e-8.
    """

    code, stage, severity, since = "NUM012", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputDiffers):
            seen = finding.seen
            if seen.blame.cause == "constant-dropped":
                again = "" if case.job.onnx is None else "with `torchferry.export`, "
                yield diagnosis(
                    self.code,
                    finding,
                    f"the constant in `{seen.blame.code}` is missing from the file: {output(seen)} is wrong, {seen.words}",
                    f"export {again}with `optimize=False`, or use a larger epsilon",
                )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        if case.job.onnx is None:  # in a file from elsewhere the constant is gone for good
            yield Repair(self.code, "leave the exporter's optimiser off", OptimiserOff())


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Unit(torch.nn.Module):
        def forward(self, x):
            return x / (x.norm(dim=-1, keepdim=True) + 1e-8)

    path = Path(tempfile.mkdtemp()) / "unit.onnx"
    example = (torch.randn(2, 4),)
    torch.onnx.export(Unit(), example, str(path), input_names=["x"], verbose=False)
    return Job(Unit(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Unit(torch.nn.Module):
        def forward(self, x):
            return x / (x.norm(dim=-1, keepdim=True) + 1e-5)

    path = Path(tempfile.mkdtemp()) / "unit.onnx"
    example = (torch.randn(2, 4),)
    torch.onnx.export(Unit(), example, str(path), input_names=["x"], verbose=False)
    return Job(Unit(), example, onnx=path)
