"""RUN023: made-feed-fails."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, shapes
from torchferry.records import Job, findings


class MadeFeedFails(FindingRule[findings.MadeFeedFails | findings.NoFeedMade]):
    """No feed could be made on which the file runs

    ## What happened
    No feeds were given, so some were made from what the file declares; the file ran on none of them. They may make no sense
    for it. Or none were made: an input is no tensor of numbers, or larger than is made up for a trial.
    ## Do instead
    Give a real feed: `torchferry check model.onnx --data feeds.npz`.
    """

    code, severity = "RUN023", "warning"

    def message(self, finding: findings.MadeFeedFails | findings.NoFeedMade) -> str:
        if isinstance(finding, findings.NoFeedMade):
            return f"the file opens, and was not run: no feed was made for it, as {finding.why}"
        return (
            f"the file opens, but ran on no feed made from its declarations; {at(finding)} failed "
            f"at {shapes(finding.sizes)}: {finding.text}"
        )

    def help(self, finding: findings.MadeFeedFails | findings.NoFeedMade) -> str:
        return "give a real feed: `torchferry check model.onnx --data feeds.npz`"


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (int64[1] n) => (int64[1] y) <int64[1] s '
        "= {6}, int64[1] one = {1}> { z = Sub (n, one) [div] y = Div (s, z) }"
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
    return Job(onnx=example_file(text))
