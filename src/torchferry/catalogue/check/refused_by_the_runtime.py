"""CHK029: refused-by-the-runtime."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file
from torchferry.records import Job, findings


class RefusedByTheRuntime(FindingRule[findings.RuntimeRefused]):
    """The runtime refuses to open the file

    ## What happened
    ONNX Runtime found something wrong for which torchferry has no diagnosis of its own. Its words are given, with the place
    they name.
    ## Do instead
    Look at the node or tensor named; please report the file, so that it gets a diagnosis.
    """

    code, severity = "CHK029", "error"

    def message(self, finding: findings.RuntimeRefused) -> str:
        tensor = finding.tensor
        where = f"initializer `{tensor}`" if tensor and not (finding.location and finding.location.onnx_node) else at(finding)
        return f"the runtime refuses the file, at {where}: {finding.text}"

    def help(self, finding: findings.RuntimeRefused) -> str:
        return "look at what is named here; `torchferry check --format json` has the whole message"


def bad() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y) <float[4] s = {1, 1, 2, 2}>
        { [up] y = Resize <mode = "bogus"> (x, , s) }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
