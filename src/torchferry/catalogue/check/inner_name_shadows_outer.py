"""CHK023: inner-name-shadows-outer."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file
from torchferry.edits.check import RenameShadowed
from torchferry.records import Case, Job, findings


class InnerNameShadowsOuter(FindingRule[findings.ShadowedName]):
    """A branch or loop body reuses the name of an outer value

    ## What happened
    Inside the branches of an If or the body of a Loop all outer names are visible, so an inner value must not take one of
    them.
    ## Do instead
    Rename the inner value.
    ## Repair safety
    Safe: the inner value and its readers inside get another name.
    """

    code, severity = "CHK023", "error"

    def message(self, finding: findings.ShadowedName) -> str:
        return (
            f"{at(finding)}: its subgraph `{finding.subgraph}` defines `{finding.value}`, which the graph around it defines too"
        )

    def help(self, finding: findings.ShadowedName) -> str:
        return "rename the inner value"

    def offers(self, case: Case, finding: findings.ShadowedName) -> Iterator[Offer]:
        yield "rename the inner values", RenameShadowed(), "safe"


def bad() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, bool c) => (float[N, 3] y) {
        h = Relu (x)
        [choice] z = If (c) <then_branch = a () => (float[N, 3] t) { t = Identity (x) },
                             else_branch = b () => (float[N, 3] h) { h = Neg (x) }>
        y = Add (h, z) }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
