"""CHK021: node-name-used-twice."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import UniqueNodeNames
from torchferry.records import Case, Job, findings


class NodeNameUsedTwice(FindingRule[findings.DuplicateNodeName]):
    """Two nodes have the same name

    ## What happened
    Node names must be unique for ONNX Runtime; `onnx.checker` does not look. Tools that merge graphs leave such names.
    ## Do instead
    Prefix the names of one part when merging (`onnx.compose.merge_models(..., prefix1=...)`).
    ## Repair safety
    Safe: names of nodes mean nothing to the computation.
    """

    code, severity = "CHK021", "error"

    def message(self, finding: findings.DuplicateNodeName) -> str:
        return (
            f"{len(finding.ops)} nodes are named `{finding.location.onnx_node if finding.location else ''}` "
            f"({', '.join(finding.ops)})"
        )

    def help(self, finding: findings.DuplicateNodeName) -> str:
        return "give each node a name of its own"

    def offers(self, case: Case, finding: findings.DuplicateNodeName) -> Iterator[Offer]:
        yield "number the nodes that share a name", UniqueNodeNames(), "safe"


def bad() -> Job:
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { [act] h = Relu (x) [act] y = Tanh (h) }'
    )
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
