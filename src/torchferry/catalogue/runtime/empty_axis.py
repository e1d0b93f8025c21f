"""RUN016: empty-axis."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, shapes
from torchferry.records import Job, findings


class EmptyAxis(FindingRule[findings.EmptyAxis]):
    """An axis has no elements where the operator needs some

    ## What happened
    An input with size 0 (no detections, an empty prompt) reached an operator that has no answer for nothing, such as the
    largest of none.
    ## Do instead
    Guard the call: do not run the model on nothing.
    """

    code, severity = "RUN016", "error"

    def message(self, finding: findings.EmptyAxis) -> str:
        return (
            f"{at(finding)}: axis {finding.axis} of `{finding.empty}` has size 0, because "
            f"the input {shapes(finding.fed)} has 0 rows there"
        )

    def help(self, finding: findings.EmptyAxis) -> str:
        return "do not run the model on an empty input, or treat that case in the model"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.zeros((0, 3), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (int64[3] y)  { [best] y = '
    "ArgMax <axis = 0, keepdims = 0> (x) }"
)
