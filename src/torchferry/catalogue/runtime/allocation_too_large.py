"""RUN018: allocation-too-large."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, shapes
from torchferry.records import Finding, Job


class AllocationTooLarge(FindingRule):
    """A value would be larger than memory

    ## What happened
    A size computed from the inputs is enormous: often a length or count fed where another was meant.
    ## Do instead
    Check the values that sizes are computed from.
    """

    code, severity = "RUN018", "error"
    kinds = ("allocation-too-large",)

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        much = f"{facts['bytes']:,} bytes" if facts["bytes"] else "more memory than there is"
        sizes = ", ".join(f"`{n}` = {v}" for n, v in {**facts["sizes"], **facts["large"]}.items())
        return (
            f"{at(finding)} asks for {much}"
            + (f"; sizes: {sizes}" if sizes else "")
            + (f"; shapes: {shapes(facts['shapes'])}" if facts["shapes"] else "")
        )

    def help(self, finding: Finding) -> str:
        return "feed smaller sizes"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"n": np.array([10**13])},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"n": np.array([4])},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (int64[1] n) => (float[K] y)  { [zeros] y = ConstantOfShape (n) }'
