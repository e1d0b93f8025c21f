"""CHK019: shapes-do-not-fit."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, as_guess, at, example_file, listed, node, shapes
from torchferry.edits.check import TransposeOperand
from torchferry.records import Case, Job, findings


class ShapesDoNotFit(FindingRule[findings.ShapeConflict]):
    """Shapes that are fixed in the file cannot go together

    ## What happened
    The sizes of weights and values contradict each other, whatever is fed: weights of another checkpoint, a transposed
    matrix, an edit.
    ## Do instead
    Take weights and graph from the same export.
    ## Repair safety
    A guess: for a Gemm, where operands, bias and declared output agree in just one way, with one of them transposed; weights
    of another checkpoint may have that shape too.
    """

    code, severity = "CHK019", "error"

    def message(self, finding: findings.ShapeConflict) -> str:
        return f"{at(finding)}: {shapes(finding.shapes)} do not fit: {finding.text}"

    def help(self, finding: findings.ShapeConflict) -> str:
        weights = finding.weights
        return (
            f"check the weights {listed(weights)}: they may be of another checkpoint"
            if weights
            else "check how the graph was edited"
        )

    def offers(self, case: Case, finding: findings.ShapeConflict) -> Iterator[Offer]:
        if (flag := finding.flip) is not None and finding.location is not None:
            edit = TransposeOperand(node(finding), flag)
            yield as_guess(f"flip {flag}", edit, "that the shapes fit does not show that the matrix was stored so")


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 2] y) <float[2, '
        "3] w = {1, 2, 3, 4, 5, 6}, float[2] b = {0, 0}> { [fc] y = Gemm (x, w, b) }"
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
