"""RUN018: allocation-too-large."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, shapes
from torchferry.records import Job, findings


class AllocationTooLarge(FindingRule[findings.AllocationTooLarge]):
    """A value would be larger than memory

    ## What happened
    A size computed from the inputs is enormous: often a length or count fed where another was meant.
    ## Do instead
    Check the values that sizes are computed from.
    """

    code, severity = "RUN018", "error"

    def message(self, finding: findings.AllocationTooLarge) -> str:
        much = f"{finding.bytes:,} bytes" if finding.bytes else "more memory than there is"
        sizes = ", ".join(f"`{n}` = {v}" for n, v in {**finding.sizes, **finding.large}.items())
        return (
            f"{at(finding)} asks for {much}"
            + (f"; sizes: {sizes}" if sizes else "")
            + (f"; shapes: {shapes(finding.failure.shapes)}" if finding.failure.shapes else "")
        )

    def help(self, finding: findings.AllocationTooLarge) -> str:
        return "feed smaller sizes"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"n": np.array([10**13])},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"n": np.array([4])},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (int64[1] n) => (float[K] y)  { [zeros] y = ConstantOfShape (n) }'
