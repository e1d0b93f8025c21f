"""RUN006: fed-no-array."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedNoArray(FindingRule[findings.FeedNotAnArray]):
    """An input is fed something that is not a numpy array

    ## What happened
    ONNX Runtime takes numpy arrays and lists; torch tensors, tuples, scalars and arrays of Python objects it refuses.
    ## Do instead
    Convert: `tensor.detach().cpu().numpy()`, `np.asarray(value)`.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN006", "error"

    def message(self, finding: findings.FeedNotAnArray) -> str:
        return finding.words

    def help(self, finding: findings.FeedNotAnArray) -> str:
        return f"feed `{finding.location.input_name if finding.location else ''}` as a numpy array"

    def offers(self, case: Case, finding: findings.FeedNotAnArray) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:

    return Job(onnx=example_file(TEXT), feeds=({"x": ((1.0, 2.0, 3.0),)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
