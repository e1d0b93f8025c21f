"""RUN013: size-baked-into-graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, listed, offer_of_moving_sizes, shapes
from torchferry.records import Case, Finding, Job


class SizeBakedIntoGraph(FindingRule):
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
    kinds = ("baked-size",)

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        nodes = list(dict.fromkeys(r["node"] for r in facts["plan"]["rewrites"]))
        ends = "is wrong without a word" if facts.get("hidden") else "fails"
        return (
            f"{at(finding)} {ends} at {shapes(facts['fed'])}: sizes of the example {shapes(facts['example'])} "
            f"are baked into {listed(nodes)}"
        )

    def help(self, finding: Finding) -> str:
        return "compute the size from the input's shape in place of the constant"

    def evidence(self, finding: Finding) -> tuple[str, ...]:
        return (f"shapes at the node: {shapes(finding.facts['shapes'])}", finding.facts["text"])

    def offers(self, case: Case, finding: Finding) -> Iterator[Offer]:
        plan = finding.facts.get("plan")
        if plan is not None and not finding.facts.get("hidden"):  # what a wrong file gives proves nothing of a mended one
            yield offer_of_moving_sizes(finding.facts)


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
