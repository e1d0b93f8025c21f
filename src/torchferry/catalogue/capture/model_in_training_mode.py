"""CAP015."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ModelInTrainingMode(Rule):
    """The model is in training mode

    ## What happened
    `model.eval()` was not called, so dropout drops and batch norm uses the statistics of the batch (and changes its own). The
    model is exported as it is, as that may be meant; but random layers cannot be compared, and are not what one deploys.

    ## Do instead
    Call `model.eval()` before the export; on the command line, `--eval` does.
    """

    code, stage, severity = "CAP015", "capture", "warning"
    also = frozenset({"NUM006"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found = case.findings(findings.PartInTraining)
        if not found:
            return
        kinds = sorted({f.type for f in found})
        first = found[0].path
        yield Diagnosis(
            self.code,
            f"the model is in training mode: {', '.join(f'`{k}`' for k in kinds)} at `{first}`"
            + (f" and {len(found) - 1} more place{'s' if len(found) > 2 else ''}" if len(found) > 1 else "")
            + " behaves otherwise than in eval mode",
            "call `model.eval()` before the export, or say --eval, unless training behaviour is what the file should have",
            Location(module_path=first),
        )


def bad() -> Job:
    """Dropout left in training mode."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5))
    return Job(model.train(), (torch.rand(6, 4),))


def good() -> Job:
    """The same after eval()."""
    import torch

    return Job(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5)).eval(), (torch.rand(6, 4),))
