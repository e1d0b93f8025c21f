"""CHK016: type-not-taken-by-operator."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import CastAround, CastOperands, ConvertOpset, OtherType
from torchferry.records import Case, Job, Safety, findings


class TypeNotTakenByOperator(FindingRule[findings.TypeNotAllowed]):
    """A value is of a type that the operator does not take

    ## What happened
    The condition of a Where must be bool, the shape of a Reshape int64, and so on. PyTorch converts such values by itself,
    ONNX does not.
    ## Do instead
    Put a Cast before the operator.
    ## Repair safety
    Safe where nothing is lost by the cast (anything to bool, integers to wider integers or floats). Unsafe where floats
    become integers.
    """

    code, severity = "CHK016", "error"

    def message(self, finding: findings.TypeNotAllowed) -> str:
        return (
            f"{at(finding)}: its input `{finding.value}` ({finding.parameter}) is {finding.type}, "
            f"the operator takes {', '.join(finding.allowed[:6])}"
        )

    def help(self, finding: findings.TypeNotAllowed) -> str:
        if (newer := finding.newer) is not None:
            return f"opset {newer} takes this type here: convert the model"
        return f"cast `{finding.value}` to {finding.to or 'a type that it takes'} first"

    def offers(self, case: Case, finding: findings.TypeNotAllowed) -> Iterator[Offer]:
        if finding.newer is not None:
            yield f"convert to opset {finding.newer}", ConvertOpset(finding.newer), "safe"
        if finding.to is None or finding.location is None:
            return
        safety: Safety = "safe" if finding.lossless else "unsafe"
        if finding.back:
            entry = OtherType(node(finding), from_=finding.type, to=finding.to, inputs=(finding.value,))
            yield f"compute it in {finding.to}", CastAround((entry,)), safety
        else:
            edit = CastOperands(node(finding), (finding.value,), finding.to)
            yield f"cast `{finding.value}` to {finding.to}", edit, safety


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, float[N, 3] keep) => (float[N, '
        "3] y)  { [choose] y = Where (keep, x, x) }"
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
