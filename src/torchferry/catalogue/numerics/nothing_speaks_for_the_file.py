"""NUM021: no trial says anything for the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Outcome, findings

WORDS: Mapping[Outcome, str] = {
    "eager-refused": "refused by the model itself",
    "beyond-range": "at values that no model need take",
    "too-large": "too large for the memory that a trial may take",
    "undetermined": "where an operator of the model has no single answer",
    "eager-cut-off": "where torch's own kernels cut sums off on this processor",
}


class NothingSpeaksForTheFile(Rule):
    """No trial shows that the file is the model, or hardly any number of it.

    ## What happened
    A file passes when trials agree. Here none does: the model refused the inputs that were made for it, or answered with
    nothing that could be compared. Or they agree in a few numbers alone, and most others are excused: they differ at
    positions that a mask hides. That proves nothing against the file, and next to nothing for it.

    ## Do instead
    Give `examples=` with inputs of the kind that the model will see, and with few padded positions.
    """

    code, stage, severity, since = "NUM021", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.NothingShown):
            counts = finding.outcomes
            told = ", ".join(f"{n} {WORDS.get(outcome, outcome)}" for outcome, n in counts.items())
            yield Diagnosis(
                self.code,
                f"no trial speaks for the file: of {sum(counts.values())}, {told}",
                "give `examples` that the model takes and answers with numbers",
                evidence=finding.notes,
            )
        for mostly in case.findings(findings.MostlyExcused):
            yield Diagnosis(
                self.code,
                f"in {mostly.excused} of {mostly.ordinary} ordinary trials most numbers differ, and are excused",
                "give `examples` in which fewer positions are padded",
                evidence=mostly.notes,
            )


def bad() -> Job:
    """A file that is right for one token in six, and nobody looks at the others."""
    return _compared(1)


def good() -> Job:
    return _compared(6)


def _compared(real: int) -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Attends(torch.nn.Module):
        def __init__(self, keys):
            super().__init__()
            self.keys, self.table = keys, torch.nn.Embedding(20, 3)

        def forward(self, ids, attention_mask):
            x = self.table(ids)
            on = attention_mask[:, None, :] if self.keys else attention_mask[:, None, :] * attention_mask[:, :, None]
            return (x @ x.transpose(1, 2)).masked_fill(on == 0, -1e9).softmax(-1) @ x

    mask = torch.zeros(2, 6, dtype=torch.int64)
    mask[:, :real] = 1
    path = Path(tempfile.mkdtemp()) / "attends.onnx"
    model, other, example = Attends(False).eval(), Attends(real == 1).eval(), (torch.randint(0, 20, (2, 6)), mask)
    other.load_state_dict(model.state_dict())
    torch.onnx.export(other, example, str(path), dynamo=False, input_names=["ids", "attention_mask"])
    return Job(model, example, onnx=path)
