"""RUN019: condition-not-scalar."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file
from torchferry.records import Job, findings


class ConditionNotScalar(FindingRule[findings.ConditionNotScalar]):
    """The condition of an If or Loop has several elements

    ## What happened
    A condition is one truth value. An array of them was given.
    ## Do instead
    Reduce it (any, all), or use Where for a choice by element.
    """

    code, severity = "RUN019", "error"

    def message(self, finding: findings.ConditionNotScalar) -> str:
        return (
            f"{at(finding)}: its condition `{finding.condition}` has the shape {list(finding.shape)}, "
            "it must have exactly one element"
        )

    def help(self, finding: findings.ConditionNotScalar) -> str:
        return (
            "feed one truth value" if finding.condition in finding.failure.inputs else "reduce the condition to one truth value"
        )


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones(3, np.float32), "c": np.array([True, False])},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones(3, np.float32), "c": np.array([True])},))


TEXT = """<ir_version: 8, opset_import: ["": 18]> g (float[3] x, bool[K] c) => (float[3] y) {
    [choice] y = If (c) <then_branch = a () => (float[3] t) { t = Relu (x) },
                         else_branch = b () => (float[3] e) { e = Neg (x) }> }"""
