"""RUN901: a stage ran into the time limit."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location


class StageTookTooLong(Rule):
    """A stage ran into the time limit.

    ## What happened
    Each stage has a time limit, so that a hang in a model, in torch or in onnxruntime ends with an answer. This stage
    was still busy when its time was up, and was broken off.

    ## Do instead
    If the model is just large, allow more time: `--time-limit 3600` on the command line, or
    `budget=torchferry.Budget(time_limit=3600)`. If it is not, the stage named tells where it hangs.
    """

    code, stage, severity, since = "RUN901", "verify", "error", "0.1"
    explains = frozenset({"INP001"})  # an example call that is broken off has not failed by itself

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for step in case.steps:
            if step.fault is not None and step.fault.type_name == "TookTooLong":
                yield Diagnosis(
                    self.code,
                    f"stage `{step.stage}` was still busy after {case.job.budget.time_limit:g} s and was broken off",
                    help="allow more with `--time-limit SECONDS` or `budget=torchferry.Budget(time_limit=...)`",
                    location=Location(op=step.stage),
                )


def bad() -> Job:
    import time

    import torch

    from torchferry import Budget

    class Sleeper(torch.nn.Module):
        def forward(self, x):
            time.sleep(5)
            return x * 2

    return Job(Sleeper(), (torch.ones(2, 3),), budget=Budget(time_limit=0.5))


def good() -> Job:
    import torch

    class Awake(torch.nn.Module):
        def forward(self, x):
            return x * 2

    return Job(Awake(), (torch.ones(2, 3),))
