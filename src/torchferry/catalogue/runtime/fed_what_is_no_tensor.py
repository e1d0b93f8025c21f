"""RUN007: fed-what-is-no-tensor."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Job, findings


class FedWhatIsNoTensor(FindingRule[findings.FeedNotAnArrayRefused]):
    """An input is fed something that cannot become an array

    ## What happened
    None, ragged lists or Python objects were fed where the file takes a tensor.
    ## Do instead
    Feed an array of numbers, all rows of one length.
    """

    code, severity = "RUN007", "error"

    def message(self, finding: findings.FeedNotAnArrayRefused) -> str:
        return finding.words

    def help(self, finding: findings.FeedNotAnArrayRefused) -> str:
        return f"feed `{finding.location.input_name if finding.location else ''}` as a numpy array of numbers"


def bad() -> Job:

    return Job(onnx=example_file(TEXT), feeds=({"x": None},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
