"""NUM006: random on both sides, so that values cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.edits.verify import AcceptRandom
from torchferry.records import Case, Diagnosis, Job, Location, Repair, findings


class RandomOutput(Rule):
    """An output is random, so that its values cannot be verified.

    ## What happened
    The model draws random numbers and the file does so too, each from a generator of its own. Shapes and dtypes were
    compared; values differ from call to call on both sides, so nothing can be said of them.

    ## Do instead
    If it is dropout, call `model.eval()`, or give `training=self.training` to `F.dropout`. If the numbers are meant, take
    them as an input with `noise="input"`: the caller draws them, and the file can be verified.

    ## Repair safety
    Unsafe: the file keeps its own generator and is handed over although the values of this output were not compared.
    """

    code, stage, severity, since = "NUM006", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        accepted = bool(case.job.edits_for(AcceptRandom))
        for finding in case.findings(findings.RandomOutput):
            outputs = ", ".join(f"`{o}`" for o in finding.outputs)
            yield Diagnosis(
                self.code,
                f"{outputs} is random in the model and in the file: only shape and dtype could be compared",
                "call `model.eval()` if it is dropout; if the numbers are meant, take them as an input: "
                'noise="input", or --noise input',
                finding.location or Location(),
                severity="warning" if accepted else "error",
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        if found.severity == "error":
            changes = "the values of random outputs are not verified"
            yield Repair(self.code, "hand the file over with its own random generator", AcceptRandom(), "unsafe", changes)


def bad() -> Job:
    import torch

    class Noisy(torch.nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    return Job(Noisy().eval(), (torch.randn(2, 4),))


def good() -> Job:
    import torch

    class Noisy(torch.nn.Module):
        def forward(self, x, noise):
            return x + noise

    return Job(Noisy().eval(), (torch.randn(2, 4), torch.randn(2, 4)))
