"""NUM030: a weight of the file is not the model's."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class FileHasOtherWeights(Rule):
    """The file's weights are not the model's.

    ## What happened
    Every weight of the file was looked for in the model: byte for byte, through transpositions, slices and concatenations,
    among the values that the model computes of its weights alone, and with batch normalisations multiplied in. One was not
    found, and is not what a trial would have to notice either: it is one of the model's with some numbers changed, or no
    trial hangs on it, or the trials that fail agree once the model's own numbers stand in its place. Such a file was made
    from another checkpoint, or its weights were changed afterwards. It may be right for most inputs: one row of a
    vocabulary is looked up once in a million words.

    ## Do instead
    Export again from this model, or compare the file with the model that it was made from. Where weights were changed on
    purpose (merged, pruned, quantised), make the same change to the model that is compared, or give `examples` whose outputs
    hang on them.
    """

    code, stage, severity, since = "NUM030", "verify", "error", "0.2"
    explains = frozenset({"NUM001", "NUM002", "NUM007", "NUM008", "NUM009", "NUM010", "NUM012", "NUM031"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.WeightsDiffer):
            stored = f"`{finding.weight}`"
            named = finding.near + (f" (in the file {stored})" if stored != finding.near else "")
            blind = "" if finding.proof or finding.changed else ", and no trial would notice"
            seen = [f"trial: {finding.proof}"] if finding.proof else []
            if finding.cured:
                seen.append(f"with the model's own numbers in their places the file agrees in {finding.cured} trials that fail")
            yield Diagnosis(
                self.code,
                f"{named} differs from the model's in {finding.words}{blind}",
                "export again from this model, or compare the file with the model that it was made from",
                evidence=(*seen, *(f"also different, {other}" for other in finding.others)),
            )


def bad() -> Job:
    return _compared(other_row=700)


def good() -> Job:
    return _compared(other_row=None)


def _compared(other_row: int | None) -> Job:
    import copy
    import tempfile
    from pathlib import Path

    import torch

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(1000, 4)

        def forward(self, ids):
            return self.table(ids).tanh()

    torch.manual_seed(0)
    model = Words().eval()
    exported = copy.deepcopy(model)
    if other_row is not None:
        exported.table.weight.data[other_row] += 1
    path = Path(tempfile.mkdtemp()) / "words.onnx"
    example = (torch.tensor([[1, 5, 9]]),)
    torch.onnx.export(exported, example, str(path), dynamo=False, input_names=["ids"], dynamic_axes={"ids": {0: "batch"}})
    return Job(model, example, onnx=path)
