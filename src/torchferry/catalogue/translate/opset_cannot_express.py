"""TRN003."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class OpsetCannotExpress(Rule):
    """The opset that was asked for cannot express the model

    ## What happened
    An operator of the graph came with a later opset and cannot be written in the operators of the one that was asked for.
    Operators that can be (LayerNormalization, Gelu, Split, ...) have been rewritten already.

    ## Do instead
    Ask for the opset that the message names, or for none: torchferry then takes the lowest one that the model needs. If the
    runtime is what limits you, name it: `target="onnxruntime==1.17"`.
    """

    code, stage = "TRN003", "translate"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OpsetCannotExpress):
            yield Diagnosis(
                self.code,
                f"ONNX opset {finding.opset} has no way to write `{finding.operator}`, which the model needs",
                f"ask for opset {finding.lowest}, the lowest that can express the model",
                finding.location or Location(op=finding.operator),
            )


def bad() -> Job:
    """Bitwise operators came with opset 18."""
    import torch

    class Flags(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x & 6

    return Job(Flags().eval(), (torch.arange(8),), opset=15)


def good() -> Job:
    """The same, in an opset that has them."""
    import torch

    class Flags(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x & 6

    return Job(Flags().eval(), (torch.arange(8),), opset=18)
