"""RUN021: nan-appears."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, listed
from torchferry.records import Job, findings


class NanAppears(FindingRule[findings.NanAppears]):
    """NaN appears in the outputs though none was fed

    ## What happened
    A node made NaN from ordinary numbers: a root or logarithm of a negative number, 0 / 0, inf - inf. The model may do so
    in PyTorch too.
    ## Do instead
    Look at the node named, and at what reaches it.
    """

    code, severity = "RUN021", "warning"

    def message(self, finding: findings.NanAppears) -> str:
        return f"{at(finding)} is the first to give NaN ({listed(finding.outputs)}), from inputs without any"

    def help(self, finding: findings.NanAppears) -> str:
        return "compare with the original model on the same feed: it may give NaN there too"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": -np.ones((2, 3), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { [root] y = Sqrt (x) }'
