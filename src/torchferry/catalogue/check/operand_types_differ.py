"""CHK015: operand-types-differ."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, listed, node
from torchferry.edits.check import CastOperands
from torchferry.records import Case, Job, findings


class OperandTypesDiffer(FindingRule[findings.TypeConflict]):
    """Operands that must be of one type are of different types

    ## What happened
    An operator of ONNX does not convert types by itself as PyTorch does: an int64 factor beside float activations is an
    error.
    ## Do instead
    Cast one of them, or store the constant in the activations' type.
    ## Repair safety
    Safe: a constant is rewritten in the activations' type where it is the same number there; otherwise the operand that
    PyTorch would convert is cast. Activations in half precision are never widened for a constant's sake. Zero points and
    quantised numbers are left as they are: as another type they are other numbers.
    """

    code, severity = "CHK015", "error"

    def message(self, finding: findings.TypeConflict) -> str:
        types = ", ".join(f"`{v}` is {w}" for v, w in finding.types.items())
        return f"{at(finding)}: its operands must be of one type, but {types}"

    def help(self, finding: findings.TypeConflict) -> str:
        if not finding.castable:
            return (
                "quantise again: a zero point has the type of the numbers it belongs to, and which of the two was meant is lost"
            )
        return f"cast {listed(finding.cast)} to {finding.to}"

    def offers(self, case: Case, finding: findings.TypeConflict) -> Iterator[Offer]:
        if not finding.castable:
            return
        edit = CastOperands(node(finding), finding.cast, finding.to)
        yield f"cast {listed(finding.cast)} to {finding.to}", edit, "safe"


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) <int64[1] '
        "two = {2}> { [scale] y = Mul (x, two) }"
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
