"""CHK018: branch-types-differ."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import CastBranches
from torchferry.records import Case, Job, findings


class BranchTypesDiffer(FindingRule[findings.BranchTypesDiffer]):
    """The branches of an If give different types

    ## What happened
    Whatever the condition, the output of an If has one type. Scripted Python (`x if flag else x.long()`) can give two.
    ## Do instead
    Convert to one type in the model's source, in both branches.
    ## Repair safety
    Safe: a branch gets a Cast to the type that the output is declared with.
    """

    code, severity = "CHK018", "error"

    def message(self, finding: findings.BranchTypesDiffer) -> str:
        return f"{at(finding)}: the branches give {' and '.join(sorted(finding.types))} for `{finding.output}`"

    def help(self, finding: findings.BranchTypesDiffer) -> str:
        return f"cast to {finding.to} in the other branch"

    def offers(self, case: Case, finding: findings.BranchTypesDiffer) -> Iterator[Offer]:
        edit = CastBranches(node(finding), finding.index, finding.to)
        yield f"cast both branches to {finding.to}", edit, "safe"


def bad() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, bool c) => (float[N, 3] y) {
        [choice] y = If (c) <then_branch = a () => (float[N, 3] t) { t = Identity (x) },
                             else_branch = b () => (int64[N, 3] e) { e = Cast <to = 7> (x) }> }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
