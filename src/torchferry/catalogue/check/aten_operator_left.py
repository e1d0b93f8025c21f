"""CHK013: aten-operator-left."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import Decompose
from torchferry.records import Case, Job, findings


class AtenOperatorLeft(FindingRule[findings.AtenOperator]):
    """An ATen operator of PyTorch was left in the file

    ## What happened
    The exporter had no ONNX form for a PyTorch operator and left it as a call into PyTorch (`ONNX_ATEN_FALLBACK`). Only
    builds of the runtime with PyTorch inside can run that.
    ## Do instead
    Export again with `torchferry export`, or rewrite that operator in the model.
    ## Repair safety
    Safe: offered for operators whose definition in ONNX is known; the file is opened and run afterwards.
    """

    code, severity = "CHK013", "error"

    def message(self, finding: findings.AtenOperator) -> str:
        return f"{at(finding)} is the PyTorch operator `aten::{finding.operator.removeprefix('aten::')}`, not an ONNX one"

    def help(self, finding: findings.AtenOperator) -> str:
        return "export the model again with `torchferry export`, which lowers it or says at which line it is used"

    def offers(self, case: Case, finding: findings.AtenOperator) -> Iterator[Offer]:
        nodes = tuple(node(f) for f in self.found(case) if f.recipe and f.location)
        if finding.recipe:
            yield "write it out in ONNX operators", Decompose(nodes), "safe"


def bad() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18, "org.pytorch.aten": 1]> g (float[N, 3] x, float[N, 3] z) => (float[N, 3] y)
        { y = org.pytorch.aten.ATen <operator = "logaddexp"> (x, z) }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
