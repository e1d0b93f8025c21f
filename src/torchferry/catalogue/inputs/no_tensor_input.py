"""INP007."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class NoTensorInput(Rule):
    """None of the arguments is a tensor

    ## What happened
    A file's inputs are tensors. Texts, numbers and other Python objects are fixed when the file is made, so a model that
    takes nothing else becomes a file that answers always the same. Texts are turned into numbers by Python code, which
    cannot be part of the graph.

    ## Do instead
    Export the part that starts from tensors: keep the tokenizer outside and let `forward` take token ids and a mask.
    """

    code, stage = "INP007", "inputs"
    explains = frozenset({"INP006"})  # that another example holds other texts

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.NoTensorInput):
            yield Diagnosis(
                self.code,
                f"`{finding.argument}` holds no tensor ({finding.given}), and nothing else does: the file would have no inputs",
                "let `forward` take token ids (tensors) and keep the step that makes them outside of the model",
                finding.location or Location(),
                (f"used here: {finding.code}",) if finding.code else (),
            )


def bad() -> Job:
    """A model that spells its texts itself."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(128, 4)

        def forward(self, texts: list[str]) -> torch.Tensor:
            return self.emb(torch.tensor([[ord(c) for c in text] for text in texts])).mean(1)

    return Job(Model().eval(), (["cat", "dog"],))


def good() -> Job:
    """The same from token ids."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(128, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.emb(ids).mean(1)

    return Job(Model().eval(), (torch.tensor([[99, 97, 116], [100, 111, 103]]),))
