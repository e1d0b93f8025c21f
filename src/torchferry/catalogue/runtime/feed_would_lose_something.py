"""RUN005: feed-would-lose-something."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Job, findings


class FeedWouldLoseSomething(FindingRule[findings.FeedDtypeRefused]):
    """An input is fed in a type that cannot be converted without loss

    ## What happened
    Floats would lose their fractions, integers are out of range, complex numbers would lose a part. No conversion is made
    silently.
    ## Do instead
    Decide what is meant, and convert before feeding.
    """

    code, severity = "RUN005", "error"

    def message(self, finding: findings.FeedDtypeRefused) -> str:
        return finding.words

    def help(self, finding: findings.FeedDtypeRefused) -> str:
        return f"convert `{finding.location.input_name if finding.location else ''}` yourself, as it is meant"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3)) * 1j},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
