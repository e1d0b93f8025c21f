"""NUM042: an output that is too large or too small throughout, by less than rounding does to one number."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class OutputBiased(Rule):
    """An output is too large or too small throughout.

    ## What happened
    In each trial the file is within what rounding may do to a number. But rounding errs to either side, and here all numbers of
    all trials are off by the same share, and further from a run of the model in float64 than the model's own. Something is
    computed otherwise: a variance over n - 1 instead of n, another epsilon, a constant that was cut short.

    ## Do instead
    Compare the file's constants and attributes with the model's, normalisations first; or export with `torchferry.export`.
    """

    code, stage, severity, since = "NUM042", "verify", "error", "0.2"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputBiased):
            much = "larger" if finding.share > 0 else "smaller"
            model, file = (f"{100 * share:+.1g}%" for share in (finding.models, finding.files))
            yield Diagnosis(
                self.code,
                f"output `{finding.output}` is {100 * abs(finding.share):.2g}% {much} than the model's in every trial",
                "look for a constant, an epsilon or a variance that the file has otherwise",
                evidence=(f"beside float64, in {finding.trials} trials: the model {model}, the file {file}",),
            )


def bad() -> Job:
    return _normalised(unbiased=True)


def good() -> Job:
    return _normalised(unbiased=False)


def _normalised(unbiased: bool) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Normalised(torch.nn.Module):
        def __init__(self, unbiased):
            super().__init__()
            self.unbiased = unbiased
            self.first, self.last = torch.nn.Linear(256, 256), torch.nn.Linear(256, 16)

        def forward(self, x):
            y = self.first(x)
            off = y - y.mean(-1, keepdim=True)
            return self.last(off / (y.var(-1, unbiased=self.unbiased, keepdim=True) + 1e-5).sqrt())

    path = Path(tempfile.mkdtemp()) / "normalised.onnx"
    model, file, example = Normalised(False).half(), Normalised(unbiased).half(), (torch.randn(8, 256).half(),)
    file.load_state_dict(model.state_dict())
    torch.onnx.export(file, example, str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    return Job(model, example, onnx=path)
