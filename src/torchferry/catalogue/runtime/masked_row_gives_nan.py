"""RUN020: masked-row-gives-nan."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, as_guess, at, example_file
from torchferry.edits.check import ZeroMaskedRows
from torchferry.records import Case, Job, findings


class MaskedRowGivesNan(FindingRule[findings.MaskedRowNan]):
    """A row that is masked throughout makes NaN

    ## What happened
    A softmax over a row of nothing but -inf is NaN. PyTorch's attention gives zeros for a query that may see nothing; the
    exported arithmetic does not.
    ## Do instead
    Export with `torchferry export`, or mask with a large negative number in place of -inf.
    ## Repair safety
    Safe where the file says that PyTorch's own attention made the softmax (its name or its metadata do) and it feeds a product
    with the values: such rows become zeros, as that operator gives; no other number changes. Elsewhere a guess: the same
    arithmetic, written out in a model, gives NaN in PyTorch too.
    """

    code, severity = "RUN020", "error"

    def message(self, finding: findings.MaskedRowNan) -> str:
        return f"{at(finding)} gives NaN for {finding.count} rows that are masked throughout (row {list(finding.row)})"

    def help(self, finding: findings.MaskedRowNan) -> str:
        return "let such rows give zero, as PyTorch's attention does"

    def offers(self, case: Case, finding: findings.MaskedRowNan) -> Iterator[Offer]:
        title = "give zeros for rows that are masked throughout"
        edit = ZeroMaskedRows(finding.nodes)
        if finding.attention:
            yield title, edit, "safe"
        else:
            yield as_guess(title, edit, "the model may give NaN there too")


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"s": np.full((2, 2), -np.inf, np.float32), "v": np.ones((2, 3), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"s": np.zeros((2, 2), np.float32), "v": np.ones((2, 3), np.float32)},))


TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (float[L, S] s, float[S, 3] v) => (float[L, 3] '
    "y)  { [sdpa_weights] p = Softmax (s) y = MatMul (p, v) }"
)
