"""RUN009: fed-bfloat16."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedBfloat16(FindingRule[findings.FeedBfloat16]):
    """An input is bfloat16, which ONNX Runtime's numpy door does not take

    ## What happened
    numpy has no bfloat16 of its own, so `session.run` refuses arrays of ml_dtypes' type; it takes them as OrtValues.
    ## Do instead
    `OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(np.uint16), 16)` and `run_with_ort_values`.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN009", "error"

    def message(self, finding: findings.FeedBfloat16) -> str:
        return finding.words

    def help(self, finding: findings.FeedBfloat16) -> str:
        return "use torchferry.InferenceSession, or pass an OrtValue to `run_with_ort_values`"

    def offers(self, case: Case, finding: findings.FeedBfloat16) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32).astype(__import__("ml_dtypes").bfloat16)},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT.replace("bfloat16", "float16")), feeds=({"x": np.ones((2, 3), np.float16)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (bfloat16[N, 3] x) => (float[N, 3] y)  { y = Cast <to = 1> (x) }'
