"""RUN012: fixed-size-fed-another."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file, listed, offer_of_moving_sizes
from torchferry.records import Case, Job, findings


class FixedSizeFedAnother(FindingRule[findings.FixedSize]):
    """The file fixes a size, and another one is fed

    ## What happened
    The model was exported with fixed sizes, those of its example (often batch 1), and is fed others.
    ## Do instead
    Export again with dynamic axes; `torchferry export` finds them by itself.
    ## Repair safety
    Safe: offered where the graph can be shown to run at both sizes: constants that hold the example's size are computed
    instead, the outputs at the example's size are the same as before, and each row of a batch gives what it gives alone.
    """

    code, severity = "RUN012", "error"

    def message(self, finding: findings.FixedSize) -> str:
        name = finding.location.input_name if finding.location else ""
        nodes = [r.node for r in finding.plan.rewrites] if finding.plan else []
        inside = f"; the same size is baked into the constants of {listed(nodes)}" if nodes else ""
        return (
            f"invalid dimensions for input `{name}`: its dim {finding.axis} is fixed to {finding.declared} "
            f"in the file, {finding.got} is fed{inside}"
        )

    def help(self, finding: findings.FixedSize) -> str:
        if finding.turned:
            return "its sizes are the declared ones in another order: transpose it, such as from NHWC to NCHW"
        return "export again with this axis dynamic, or feed the size that the file has"

    def offers(self, case: Case, finding: findings.FixedSize) -> Iterator[Offer]:
        if finding.plan is not None:
            yield offer_of_moving_sizes(finding.plan)


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((3, 2, 2), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((1, 2, 2), np.float32)},))


TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (float[1, 2, 2] x) => (float[1, 4] y)  { s = '
    "Constant <value = int64[2] {1, -1}> () [flat] y = Reshape (x, s) }"
)
