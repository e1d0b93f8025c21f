"""CHK030: runtime-died."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file
from torchferry.records import Job, findings


class RuntimeDied(FindingRule[findings.RuntimeDied]):
    """The runtime crashed or hung on the file

    ## What happened
    The file was opened in a process of its own, which was ended by the runtime (a crash) or gave no answer within the time
    limit.
    ## Do instead
    Treat the file as hostile or damaged; do not open it in a process that matters. Please report it to onnxruntime.
    """

    code, severity = "CHK030", "error"

    def message(self, finding: findings.RuntimeDied) -> str:
        return f"{finding.failure.text}, at {at(finding)}"

    def help(self, finding: findings.RuntimeDied) -> str:
        return "do not open this file in a process that matters; if it only needs longer, raise the time limit"


def bad() -> Job:
    from torchferry import Budget

    text = """<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y)
        <int64 n = {9000000000000000000}, bool c = {1}> {
        [endless] y = Loop (n, c, x) <body = b (int64 i, bool k, float[3] a) => (bool k2, float[3] a2)
            { k2 = Identity (k) a2 = Sin (a) }> }"""
    return Job(onnx=example_file(text), budget=Budget(time_limit=3))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
