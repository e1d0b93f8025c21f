"""RUN003: input-not-fed."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Job, findings


class InputNotFed(FindingRule[findings.FeedMissingRefused]):
    """An input of the file is not fed

    ## What happened
    Every input without a stored default must be fed.
    ## Do instead
    Feed it. A tokenizer or preprocessor usually gives it when asked.
    """

    code, severity = "RUN003", "error"

    def message(self, finding: findings.FeedMissingRefused) -> str:
        return finding.words

    def help(self, finding: findings.FeedMissingRefused) -> str:
        return f"add `{finding.location.input_name if finding.location else ''}` to the feed"


def bad() -> Job:

    return Job(onnx=example_file(TEXT), feeds=({},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
