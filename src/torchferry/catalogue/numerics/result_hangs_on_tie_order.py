"""NUM009: what comes out depends on the order of equal keys."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class ResultHangsOnTieOrder(Rule):
    """What comes out depends on the order in which equal keys are sorted.

    ## What happened
    Among equal keys, `torch.sort` (unless `stable=True`) promises no order, and ONNX Runtime takes the lower index first. What
    was sorted along with the keys comes out in another order wherever keys are equal. That `torch.topk` picks any of
    several equals, and that the places themselves are others, is no error; nor are keys that were computed (by a softmax, a
    product) and are equal by accident, as those of equal inputs are.

    ## Do instead
    Break ties in the model: `torch.sort(..., stable=True)`, or add a small multiple of the index to the keys.
    """

    code, stage, severity, since = "NUM009", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.TieOrder):
            seen = finding.seen
            yield diagnosis(
                self.code,
                finding,
                f"{output(seen)} comes in another order where keys are equal: {seen.words}",
                "sort with `stable=True`, or make the keys distinct",
            )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Rank(torch.nn.Module):
        def forward(self, scores, payload):
            return payload[scores.sort(descending=True).indices]

    path = Path(tempfile.mkdtemp()) / "rank.onnx"
    example = (torch.randperm(40).float(), torch.arange(100, 140))
    torch.onnx.export(Rank(), example, str(path), dynamo=False, input_names=["scores", "payload"])
    return Job(Rank(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Rank(torch.nn.Module):
        def forward(self, scores):
            return scores.sort(descending=True).values

    path = Path(tempfile.mkdtemp()) / "rank.onnx"
    example = (torch.randperm(40).float(),)
    torch.onnx.export(Rank(), example, str(path), dynamo=False, input_names=["scores"])
    return Job(Rank(), example, onnx=path)
