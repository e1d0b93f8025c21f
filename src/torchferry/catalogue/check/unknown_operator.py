"""CHK012: unknown-operator."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file
from torchferry.records import Job, findings


class UnknownOperator(FindingRule[findings.UnknownOperator]):
    """An operator is known neither to ONNX, nor to the runtime, nor to the file

    ## What happened
    The node belongs to a custom domain. Its meaning is in a library that registers the operator, or in a function (a
    FunctionProto in `model.functions`) that got lost when a tool rewrote the file.
    ## Do instead
    Register the custom operators' library with the session (`SessionOptions.register_custom_ops_library`), or take the file
    that still has its functions.
    """

    code, severity = "CHK012", "error"

    def message(self, finding: findings.UnknownOperator) -> str:
        name = f"{finding.domain}::{finding.op}" if finding.domain else finding.op
        return (
            f"{at(finding)} calls `{name}`, which is no operator of ONNX or of the runtime, and "
            "the file has no FunctionProto for it"
        )

    def help(self, finding: findings.UnknownOperator) -> str:
        lost = "" if finding.functions else " (model.functions is empty: a tool may have dropped it)"
        return f"load the library that registers `{finding.op}`, or get the original file with the function's body{lost}"


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18, "pkg.custom": 1]> g (float[N, 3] x) => (float[N, '
        "3] y) { y = pkg.custom.Swish (x) }"
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
