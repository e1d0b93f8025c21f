"""RUN001: fed-under-another-name."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedUnderAnotherName(FindingRule[findings.FeedName]):
    """An input is fed under a name that the file does not have

    ## What happened
    The keys of a feed are the names of the file's inputs. Exporters name them after the parameters of `forward`.
    ## Do instead
    Ask the session: `[i.name for i in session.get_inputs()]`.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN001", "error"

    def message(self, finding: findings.FeedName) -> str:
        return finding.words

    def help(self, finding: findings.FeedName) -> str:
        return f"feed it as `{finding.location.input_name if finding.location else ''}`"

    def offers(self, case: Case, finding: findings.FeedName) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"input": np.ones((2, 3), np.float32)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
