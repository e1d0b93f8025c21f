"""RUN013: size-baked-into-graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, listed, offer_of_moving_sizes, shapes
from torchferry.records import Case, Job, findings


class SizeBakedIntoGraph(FindingRule[findings.BakedSize]):
    """A size of the export's example is baked into the graph

    ## What happened
    The file declares the axis as free, but a constant inside holds the size of the example that it was exported with: the
    target of a Reshape, a mask, an initial state, the parts of a Split. Other sizes fail there, or further on; a Resize
    even makes of any batch one of the example's, without an error.
    ## Do instead
    Use `x.shape[0]` and friends in the model without `int()`, and export again; `torchferry export` verifies other sizes.
    ## Repair safety
    Safe: offered where a run at the example's size and the failing one together show what the constant stands for; the
    result at the example's size is the same as before, and each row of a batch gives what it gives alone.
    """

    code, severity = "RUN013", "error"

    def message(self, finding: findings.BakedSize) -> str:
        nodes = list(dict.fromkeys(r.node for r in finding.plan.rewrites))
        ends = "is wrong without a word" if finding.hidden else "fails"
        return (
            f"{at(finding)} {ends} at {shapes(finding.plan.fed)}: sizes of the example {shapes(finding.plan.example)} "
            f"are baked into {listed(nodes)}"
        )

    def help(self, finding: findings.BakedSize) -> str:
        return "compute the size from the input's shape in place of the constant"

    def evidence(self, finding: findings.BakedSize) -> tuple[str, ...]:
        return (f"shapes at the node: {shapes(finding.failure.shapes)}", finding.failure.text)

    def offers(self, case: Case, finding: findings.BakedSize) -> Iterator[Offer]:
        if not finding.hidden:  # what a wrong file gives proves nothing of a mended one
            yield offer_of_moving_sizes(finding.plan)


def bad() -> Job:
    import numpy as np

    return Job(
        onnx=example_file(TEXT),
        feeds=(
            {"x": np.ones((2, 4), np.float32)},
            {"x": np.ones((2, 6), np.float32)},
        ),
    )


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 4), np.float32)},))


TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (float[N, C] x) => (float[N, D] y) <int64[2] '
    "s = {2, 2}> { [halves] a, y = Split <axis = 1> (x, s) }"
)
