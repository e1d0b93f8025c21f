"""RUN020: masked-row-gives-nan."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file
from torchferry.records import Case, Edit, Finding, Job, Safety


class MaskedRowGivesNan(FindingRule):
    """A row that is masked throughout makes NaN

    ## What happened
    A softmax over a row of nothing but -inf is NaN. PyTorch's attention gives zeros for a query that may see nothing; the
    exported arithmetic does not.
    ## Do instead
    Export with `torchferry export`, or mask with a large negative number in place of -inf.
    ## Repair safety
    Safe for attention (the softmax feeds a product with the values): such rows become zeros, as in PyTorch; no other number
    changes. Unsafe elsewhere, where NaN may be what the model gives in PyTorch too.
    """

    code, severity = "RUN020", "error"
    kinds = ("masked-row-nan",)

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        return f"{at(finding)} gives NaN for {facts['count']} rows that are masked throughout (row {facts['rows'][0]})"

    def help(self, finding: Finding) -> str:
        return "let such rows give zero, as PyTorch's attention does"

    def offers(self, case: Case, finding: Finding) -> Iterator[Offer]:
        safety: Safety = "safe" if finding.facts["attention"] else "unsafe"
        yield (
            "give zeros for rows that are masked throughout",
            Edit("check", "zero-masked-rows", {"nodes": finding.facts["nodes"]}),
            safety,
        )


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"s": np.full((2, 2), -np.inf, np.float32), "v": np.ones((2, 3), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"s": np.zeros((2, 2), np.float32), "v": np.ones((2, 3), np.float32)},))


TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (float[L, S] s, float[S, 3] v) => (float[L, 3] '
    "y)  { [weights] p = Softmax (s) y = MatMul (p, v) }"
)
