"""TRN002."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.edits.translate import InlineCustomOperator
from torchferry.records import Case, Diagnosis, Job, Location, Repair, findings


class CustomOperatorWithoutTranslation(Rule):
    """The model calls a custom operator that nobody has told how to translate

    ## What happened
    A custom operator is opaque: torch.export records its name, not what it does. ONNX has no such operator.

    ## Do instead
    Register it once, in one of three ways:

        torchferry.register_op("mylib::op", decomposition=function_in_plain_torch)
        torchferry.register_op("mylib::op", translation=function_in_onnxscript)
        torchferry.register_op("mylib::op", domain="com.mylib", library="libmylib.so")   # one node of your own

    ## Repair safety
    Safe: where the operator was made with `torch.library.custom_op`, its own Python body is traced into the graph instead of
    the call. The outputs are compared with the model that calls the operator.
    """

    code, stage = "TRN002", "translate"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.CustomOperator):
            operator = finding.operator
            yield Diagnosis(
                self.code,
                f"the custom operator `{operator}` has no translation to ONNX",
                "register how to compute it:\n" + skeleton(operator, finding.schema),
                finding.location or Location(op=operator),
                (f"schema: {finding.schema}",),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        for finding in case.findings(findings.CustomOperator):
            if finding.has_body and finding.location == found.location:
                edit = InlineCustomOperator(finding.operator)
                yield Repair(self.code, f"the Python body of `{finding.operator}` traced into the graph", edit)


def skeleton(operator: str, schema: str) -> str:
    """Return code to paste: a function of the operator's arguments with its defaults, registered under its name."""
    inside = schema.partition("(")[2].rpartition(") ->")[0]
    name = operator.partition("::")[2].partition(".")[0]
    return (
        "import torch, torchferry\n"
        f"def {name}({', '.join(_parameter(part) for part in _arguments(inside))}):\n"
        "    return ...  # the same in plain torch operators\n"
        f"torchferry.register_op({operator!r}, decomposition={name})"
    )


def _arguments(inside: str) -> list[str]:
    """Return a schema's arguments: what commas separate, but not within brackets."""
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _parameter(argument: str) -> str:
    """Return an argument of a schema as Python writes it: its defaults are Python's too."""
    typed, equals, default = argument.partition("=")
    return typed.split()[-1] + equals + default


def bad() -> Job:
    """An operator of somebody's own library."""
    import torch

    if not hasattr(torch.ops.torchferry_example, "halve"):

        @torch.library.custom_op("torchferry_example::halve", mutates_args=(), schema="(Tensor x) -> Tensor")
        def halve(x: torch.Tensor) -> torch.Tensor:
            return x / 2

        halve.register_fake(torch.empty_like)

    class Halve(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.torchferry_example.halve(x) + 1  # type: ignore[no-any-return]

    return Job(Halve().eval(), (torch.rand(2, 3),))


def good() -> Job:
    """The same in plain torch."""
    import torch

    class Halve(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / 2 + 1

    return Job(Halve().eval(), (torch.rand(2, 3),))
