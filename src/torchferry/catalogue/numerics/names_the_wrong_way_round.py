"""NUM020: the file computes the right values under the wrong names."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class NamesTheWrongWayRound(Rule):
    """The file's names stand at the wrong inputs or outputs.

    ## What happened
    Every value that the model gives is in the file, but under another name: exchange two names, and the outputs are the
    model's. Exporters put `input_names` and `output_names` on by position, and the order of a list is not always that of
    the arguments, or of the keys of the dict that `forward` returns. Whoever reads the outputs, or feeds the inputs, by
    name gets the wrong ones.

    ## Do instead
    Give the names in the order in which `forward` takes its arguments and returns its values, or leave them out:
    `torchferry.export` takes them from the signature and from the keys.
    """

    code, stage, severity, since = "NUM020", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.NamesSwapped):
            pairs = ", ".join(f"`{there}` holds what the model calls `{here}`" for there, here in finding.names.items())
            if finding.side == "inputs":
                pairs = ", ".join(f"`{there}` is taken for the model's `{here}`" for there, here in finding.names.items())
            yield diagnosis(
                self.code,
                finding,
                f"the file's {finding.side} are named the wrong way round: {pairs}",
                f"give `{finding.side[:-1]}_names` in the model's own order, or leave them out",
            )


def bad() -> Job:
    return _compared(["mean", "total"])


def good() -> Job:
    return _compared(["total", "mean"])


def _compared(names: list[str]) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Summary(torch.nn.Module):
        def forward(self, x):
            return {"total": x.sum(-1), "mean": x.mean(-1)}

    path = Path(tempfile.mkdtemp()) / "summary.onnx"
    example = (torch.randn(2, 4),)
    torch.onnx.export(Summary(), example, str(path), dynamo=False, input_names=["x"], output_names=names)
    return Job(Summary(), example, onnx=path)
