"""NUM006: random on both sides, so that values cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location


class RandomOutput(Rule):
    """An output is random by design, so that its values cannot be compared.

    ## What happened
    The model draws random numbers and the file does so too, each from a generator of its own. Shapes and dtypes were
    compared; values differ from call to call on both sides and were not.

    ## Do instead
    If this is meant, nothing. If values must be repeatable, take the random numbers as an input.
    """

    code, stage, severity, since = "NUM006", "verify", "warning", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings("random-output"):
            facts = finding.facts
            outputs = ", ".join(f"`{o}`" for o in facts["outputs"])
            yield Diagnosis(
                self.code,
                f"{outputs} is random in the model and in the file: only shape and dtype were compared",
                "take the random numbers as an input if values must be repeatable",
                finding.location or Location(),
            )


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
