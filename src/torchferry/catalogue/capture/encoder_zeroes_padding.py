"""CAP053."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareEncoder
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class EncoderZeroesPadding(Rule):
    """nn.TransformerEncoder gives zeros at padded positions in eager, and something else in a capture

    ## What happened
    In eval mode without gradients `nn.TransformerEncoder` drops padded positions and fills them with zeros at the end, if
    the padding is all on the right. With gradients, while training, and in a capture it does not: it computes something
    there. A mean over all positions then comes out differently.

    ## Do instead
    `nn.TransformerEncoder(..., enable_nested_tensor=False)`, and a pooling that leaves padded positions out: then all ways of
    running the model agree.

    ## Repair safety
    Safe: the file puts zeros where eager does, under the same condition on the mask.
    """

    code, stage = "CAP053", "capture"
    explains = frozenset({"NUM001", "NUM002", "NUM008"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found, verified = case.findings(findings.EncoderFastPath), case.value("verify")
        if not found or verified is None:
            return
        if any(t.outcome in ("differ", "padding-only") for t in verified.trials):
            yield Diagnosis(
                self.code,
                f"{clues.listed(found)}: nn.TransformerEncoder zeroes padded positions in eager, and not in a capture",
                "construct it with `enable_nested_tensor=False`, or leave padded positions out of what follows, such as a mean",
                clues.first(found),
                severity="error" if verified.failed else "warning",
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield Repair(self.code, "zeros at padded positions, as in eager", PrepareEncoder())


def bad() -> Job:
    """A mean over all positions of an encoder."""
    return Job(_sentence(nested=True), _example())


def good() -> Job:
    """The encoder does not take the other way."""
    return Job(_sentence(nested=False), _example())


def _sentence(nested: bool) -> Any:
    import torch

    class Sentence(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

        def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, src_key_padding_mask=padding).mean(1)

    torch.manual_seed(0)
    return Sentence().eval()


def _example() -> tuple[Any, ...]:
    import torch

    padding = torch.zeros(2, 4, dtype=torch.bool)
    padding[1, 2:] = True
    return torch.rand(2, 4, 8), padding
