"""CHK020: dead-branch-is-broken."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import InlineBranch
from torchferry.records import Case, Job, findings


class DeadBranchIsBroken(FindingRule[findings.DeadBranch]):
    """A branch that is never taken keeps the file from opening

    ## What happened
    The condition of an If is settled by constants and fixed sizes; the branch that never runs does not fit the shapes, and
    the runtime checks it all the same. Scripted code with `if x.dim() == 3` makes such files.
    ## Do instead
    Trace or export the model instead of scripting it, so that the branch is not in the file.
    ## Repair safety
    Safe: the branch that always runs takes the place of the If.
    """

    code, severity = "CHK020", "error"

    def message(self, finding: findings.DeadBranch) -> str:
        taken = "then" if finding.condition else "else"
        return (
            f"{at(finding)}: `{finding.input}` is always {finding.condition}, "
            f"so only the {taken} branch runs, and the other one does not fit"
        )

    def help(self, finding: findings.DeadBranch) -> str:
        return "replace the If by the branch that runs"

    def offers(self, case: Case, finding: findings.DeadBranch) -> Iterator[Offer]:
        edit = InlineBranch(node(finding), finding.condition)
        yield "put the branch that runs in the place of the If", edit, "safe"


def bad() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x) => (float[2, 3] y) <bool c = {1}, float[5, 5] w = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> {
        [choice] y = If (c) <then_branch = a () => (float[2, 3] t) { t = Relu (x) },
                             else_branch = b () => (float[2, 5] e) { e = MatMul (x, w) }> }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
