"""NUM001: other values than eager's, at sizes and values that the model takes."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.edits.translate import OptimiserOff
from torchferry.records import Case, Diagnosis, Job, Repair, findings
from torchferry.records.kinds_of_values import ORDINARY


class FileComputesSomethingElse(Rule):
    """The file computes other values than the model.

    ## What happened
    The same inputs were given to the model in PyTorch and to the file in ONNX Runtime, and the outputs differ by more than
    rounding explains. The place named is the first operation whose result is not found inside the file any more: up to
    there both agree. Often an operator means something else in ONNX (integer division of negative numbers, a reduction
    mode that was dropped), or a number was taken from the example's values while exporting.

    ## Do instead
    Export with `torchferry.export`, which translates the known differences rightly; or write the operation named in another
    way that means the same. `--reproducer DIR` writes the part of the file that is wrong, its inputs, and a script
    that shows it in a few lines.
    In an export of torchferry's own the exporter's optimiser is then left off, in case one of its rewrites is to blame.
    """

    code, stage, severity, since = "NUM001", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputDiffers):
            seen = finding.seen
            if seen.blame.cause in ("branch-frozen", "constant-dropped") or seen.what == "count":
                continue
            ordinary = seen.values in ORDINARY
            told = "here" if ordinary else f"with values of the kind `{seen.values}`"
            told = "with redrawn weights, alike on both sides," if seen.trial.startswith("redrawn") else told
            place = f" from `{seen.blame.code}` on" if seen.blame.code else ""
            yield diagnosis(
                self.code,
                finding,
                f"{output(seen)} is not the model's {told}{place}: {seen.words}",
                _advice(case),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        off = OptimiserOff()
        translated = any(f.seen.blame.stage == "translation" for f in case.findings(findings.OutputDiffers))
        if case.job.onnx is None and translated and off not in case.job.edits:
            yield Repair(self.code, "leave the exporter's optimiser off", off)


def _advice(case: Case) -> str:
    """Return what to do: whoever has exported with torchferry is not told to."""
    another = "write this operation in another way that means the same"
    return another if case.job.onnx is None else f"export with `torchferry.export`, or {another}"


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Bucket(torch.nn.Module):
        def forward(self, distance):
            return distance // 3

    path = Path(tempfile.mkdtemp()) / "bucket.onnx"
    example = (torch.tensor([1, 4, 9, 8]),)
    torch.onnx.export(Bucket(), example, str(path), dynamo=False, input_names=["distance"])  # divides towards zero
    return Job(Bucket(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Bucket(torch.nn.Module):
        def forward(self, distance):
            return torch.div(distance, 3, rounding_mode="floor")

    path = Path(tempfile.mkdtemp()) / "bucket.onnx"
    example = (torch.tensor([1, 4, 9, 8]),)
    torch.onnx.export(Bucket(), example, str(path), dynamo=False, input_names=["distance"])
    return Job(Bucket(), example, onnx=path)
