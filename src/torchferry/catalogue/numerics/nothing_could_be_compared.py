"""NUM014: no trial gave outputs on both sides."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job


class NothingCouldBeCompared(Rule):
    """No input was found on which both the model and the file give an answer.

    ## What happened
    A file counts as verified only when outputs were compared. Here none were: the example does not fit the sizes that the
    file declares, or the model refuses every input that the file takes.

    ## Do instead
    Give an example of the sizes that the file was made for, or export again with the sizes free that should move.
    """

    code, stage, severity, since = "NUM014", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings("nothing-compared"):
            if case.findings("file-refuses"):  # then that is the story
                continue
            yield Diagnosis(
                self.code,
                f"nothing could be compared: none of {finding.facts['tried']} trials ran on both sides",
                "give an example of the sizes that the file declares",
                evidence=tuple(finding.facts["refusals"]),
            )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    path = Path(tempfile.mkdtemp()) / "softplus.onnx"
    torch.onnx.export(torch.nn.Softplus(), (torch.randn(2, 4),), str(path), dynamo=False, input_names=["input"])
    return Job(torch.nn.Softplus(), (torch.randn(3, 5),), onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    path = Path(tempfile.mkdtemp()) / "softplus.onnx"
    torch.onnx.export(torch.nn.Softplus(), (torch.randn(2, 4),), str(path), dynamo=False, input_names=["input"])
    return Job(torch.nn.Softplus(), (torch.randn(2, 4),), onnx=path)
