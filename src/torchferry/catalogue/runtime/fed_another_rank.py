"""RUN011: fed-another-rank."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Job, findings


class FedAnotherRank(FindingRule[findings.FeedRankRefused]):
    """An input is fed with the wrong number of axes

    ## What happened
    The number of axes differs from what the file declares, and no single axis of size 1 makes up for it.
    ## Do instead
    Reshape the feed to what the file takes.
    """

    code, severity = "RUN011", "error"

    def message(self, finding: findings.FeedRankRefused) -> str:
        return finding.words

    def help(self, finding: findings.FeedRankRefused) -> str:
        return f"reshape `{finding.location.input_name if finding.location else ''}` to the rank that the file takes"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3, 4, 5), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
