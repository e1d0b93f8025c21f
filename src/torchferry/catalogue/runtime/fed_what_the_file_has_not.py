"""RUN002: fed-what-the-file-has-not."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedWhatTheFileHasNot(FindingRule[findings.FeedExtra]):
    """A feed has a key that is no input of the file

    ## What happened
    ONNX Runtime refuses keys that it does not know. Tokenizers give `token_type_ids` also for models that take none.
    ## Do instead
    Feed only what the file takes.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN002", "error"

    def message(self, finding: findings.FeedExtra) -> str:
        return finding.words

    def help(self, finding: findings.FeedExtra) -> str:
        return f"leave `{finding.location.input_name if finding.location else ''}` out"

    def offers(self, case: Case, finding: findings.FeedExtra) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32), "token_type_ids": np.zeros((2, 3))},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
