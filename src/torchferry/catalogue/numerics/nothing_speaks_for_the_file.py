"""NUM021: no trial says anything for the file."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job

WORDS = {
    "eager-refused": "refused by the model itself",
    "ill-conditioned": "where rounding alone moves the outputs as far as they differ",
    "beyond-range": "at values that no model need take",
    "eager-cut-off": "where torch's own kernels cut sums off on this processor",
}


class NothingSpeaksForTheFile(Rule):
    """No trial shows that the file is the model.

    ## What happened
    A file passes when some trial agrees. Here none does: the model refused the inputs that were made for it, or every
    answer is mostly rounding error, so that a file which computes something else would look the same. That proves nothing
    against the file, and nothing for it.

    ## Do instead
    Give `examples=` with inputs of the kind that the model will see. Where rounding is all there is, compute the step that
    loses the digits (a difference of large numbers, a variance as mean of squares minus square of mean) in another way, or
    in float64.
    """

    code, stage, severity, since = "NUM021", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings("nothing-shown"):
            counts = finding.facts["outcomes"]
            told = ", ".join(f"{n} {WORDS.get(outcome, outcome)}" for outcome, n in counts.items())
            yield Diagnosis(
                self.code,
                f"no trial speaks for the file: of {sum(counts.values())}, {told}",
                "give `examples` that the model takes and answers with more than rounding error",
                evidence=tuple(finding.facts["notes"]),
            )


def bad() -> Job:
    """A model that takes just one kind of input, and answers it with the rounding errors of a long sum."""
    return _job(1e6)


def good() -> Job:
    return _job(1.0)


def _job(scale: float) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Remainder(torch.nn.Module):
        def __init__(self, seen):
            super().__init__()
            self.register_buffer("seen", seen)
            self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 4096))
            self.register_buffer("sum", (seen.double() @ self.weight.detach().double()).float())

        def forward(self, x):
            if not torch.allclose(x, self.seen, atol=1e-3):
                raise ValueError("not the kind of input that I know")
            return (x @ self.weight - self.sum) * scale

    path = Path(tempfile.mkdtemp()) / "remainder.onnx"
    example = (torch.randn(3, 4096, generator=torch.Generator().manual_seed(0)),)
    model = Remainder(example[0]).eval()
    torch.onnx.export(model, example, str(path), dynamo=False, input_names=["x"])
    return Job(model, example, onnx=path)
