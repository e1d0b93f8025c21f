"""CHK017: declared-type-wrong."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file
from torchferry.edits.check import DeclareTypes
from torchferry.records import Case, Job, findings


class DeclaredTypeWrong(FindingRule[findings.DeclaredTypeWrong]):
    """A value is declared with a type that its node does not give

    ## What happened
    The file says int32 of a value that, by the operator's definition, is int64 (ArgMax, Shape, ...). `onnx.checker` does
    not notice.
    ## Do instead
    Declare the real type, or put a Cast before the output.
    ## Repair safety
    Safe: the declaration is corrected; no number changes. The output's type is the node's, not the one that was declared.
    """

    code, severity = "CHK017", "error"

    def message(self, finding: findings.DeclaredTypeWrong) -> str:
        what = "output" if finding.output else "value"
        return f"the {what} `{finding.value}` of {at(finding)} is declared {finding.declared}, {finding.op} gives {finding.real}"

    def help(self, finding: findings.DeclaredTypeWrong) -> str:
        return f"declare it {finding.real}, or cast it to {finding.declared} in the graph"

    def offers(self, case: Case, finding: findings.DeclaredTypeWrong) -> Iterator[Offer]:
        yield "declare the types that the nodes give", DeclareTypes(), "safe"


def bad() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (int32[N, 1] y)  { [best] y = ArgMax <axis = 1> (x) }'
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
