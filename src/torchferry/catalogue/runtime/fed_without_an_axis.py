"""RUN010: fed-without-an-axis."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedWithoutAnAxis(FindingRule[findings.FeedRank]):
    """An input is fed without one of its axes

    ## What happened
    The file takes a batch, one item without a batch axis was fed; or another axis of size 1 is missing.
    ## Do instead
    Add the axis: `x[None]`.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN010", "error"

    def message(self, finding: findings.FeedRank) -> str:
        return finding.words

    def help(self, finding: findings.FeedRank) -> str:
        return f"feed `{finding.location.input_name if finding.location else ''}[None]`"

    def offers(self, case: Case, finding: findings.FeedRank) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones(3, np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
