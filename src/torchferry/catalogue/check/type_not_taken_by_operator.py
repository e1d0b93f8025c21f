"""CHK016: type-not-taken-by-operator."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import CastAround, CastOperands, ConvertOpset, OtherType
from torchferry.records import Case, Finding, Job, Safety


class TypeNotTakenByOperator(FindingRule):
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
    kinds = ("type-not-allowed",)

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        return (
            f"{at(finding)}: its input `{facts['value']}` ({facts['parameter']}) is {facts['type']}, "
            f"the operator takes {', '.join(facts['allowed'][:6])}"
        )

    def help(self, finding: Finding) -> str:
        if (newer := finding.facts["newer"]) is not None:
            return f"opset {newer} takes this type here: convert the model"
        return f"cast `{finding.facts['value']}` to {finding.facts['to'] or 'a type that it takes'} first"

    def offers(self, case: Case, finding: Finding) -> Iterator[Offer]:
        facts = finding.facts
        if facts["newer"] is not None:
            yield f"convert to opset {facts['newer']}", ConvertOpset(facts["newer"]), "safe"
        if facts["to"] is None or finding.location is None:
            return
        safety = _safety(facts["lossless"])
        if facts["back"]:
            entry = OtherType(node(finding), from_=facts["type"], to=facts["to"], inputs=(facts["value"],))
            yield f"compute it in {facts['to']}", CastAround((entry,)), safety
        else:
            edit = CastOperands(node(finding), (facts["value"],), facts["to"])
            yield f"cast `{facts['value']}` to {facts['to']}", edit, safety


def _safety(lossless: bool) -> Safety:
    return "safe" if lossless else "unsafe"


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, float[N, 3] keep) => (float[N, '
        "3] y)  { [choose] y = Where (keep, x, x) }"
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
