"""RUN004: fed-another-element-type."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedAnotherElementType(FindingRule[findings.FeedDtype]):
    """An input is fed in another element type than the file takes

    ## What happened
    ONNX Runtime does not convert: float64, numpy's default, is refused where the file takes float32, and the message does
    not name the input.
    ## Do instead
    Cast before feeding: `x.astype(np.float32)`.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN004", "error"

    def message(self, finding: findings.FeedDtype) -> str:
        return finding.words

    def help(self, finding: findings.FeedDtype) -> str:
        return f"cast `{finding.location.input_name if finding.location else ''}` before feeding it"

    def offers(self, case: Case, finding: findings.FeedDtype) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3))},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
