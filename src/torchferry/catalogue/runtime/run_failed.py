"""RUN022: run-failed."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, listed, shapes
from torchferry.records import Job, findings


class RunFailed(FindingRule[findings.RunFailed]):
    """The run failed inside the graph

    ## What happened
    A node could not do its work on the values that reached it. The node, the shapes there and the inputs they come from are
    given.
    ## Do instead
    Check the sizes of the inputs named. Where they are right, the graph was made for other sizes: export it again.
    """

    code, severity = "RUN022", "error"

    def message(self, finding: findings.RunFailed) -> str:
        seen = f" on {shapes(finding.failure.shapes)}" if finding.failure.shapes else ""
        return f"{at(finding)} failed{seen}: {finding.failure.text}"

    def help(self, finding: findings.RunFailed) -> str:
        return (
            f"check the sizes and values of {listed(finding.failure.inputs)}"
            if finding.failure.inputs
            else "check the sizes and values that are fed"
        )


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32), "z": np.ones((2, 4), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32), "z": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, A] x, float[N, B] z) => (float[N, C] y)  { [add] y = Add (x, z) }'
