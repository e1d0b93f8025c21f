"""RUN017: integer-division-by-zero."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, listed
from torchferry.records import Job, findings


class IntegerDivisionByZero(FindingRule[findings.DivisionByZero]):
    """Integers are divided by zero

    ## What happened
    A divisor that comes from an input, or from a size, is zero.
    ## Do instead
    Feed another value.
    """

    code, severity = "RUN017", "error"

    def message(self, finding: findings.DivisionByZero) -> str:
        source = f"the input {listed(finding.zero)} is 0" if finding.zero else f"`{finding.divisor}` is 0"
        return f"{at(finding)} divides integers by zero: {source}"

    def help(self, finding: findings.DivisionByZero) -> str:
        return "feed a value that is not zero"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"n": np.array([0])},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"n": np.array([2])},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (int64[1] n) => (int64[1] y) <int64[1] s = {6}> { [div] y = Div (s, n) }'
