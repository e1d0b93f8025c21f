"""RUN014: sizes-disagree."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Job, findings


class SizesDisagree(FindingRule[findings.SizesDisagree]):
    """Inputs disagree about a size that the file ties together

    ## What happened
    The file gives axes of several inputs one name, or ties them by a formula such as `past + sequence`; the feeds do not
    keep to it. ONNX Runtime does not check: the run fails somewhere inside, or a size of 1 is silently repeated.
    ## Do instead
    Make the arrays agree.
    """

    code, severity = "RUN014", "error"

    def message(self, finding: findings.SizesDisagree) -> str:
        name = finding.location.input_name if finding.location else ""
        other = f" as dim {finding.other_axis} of `{finding.other}` is" if finding.other else ""
        return f"dim {finding.axis} of `{name}` must be {finding.says} = {finding.wants}{other}, got {finding.got}"

    def help(self, finding: findings.SizesDisagree) -> str:
        return f"feed `{finding.location.input_name if finding.location else ''}` with size {finding.wants} there"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32), "mask": np.ones((1, 3), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32), "mask": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, float[N, 3] mask) => (float[N, 3] y)  { y = Mul (x, mask) }'
