"""CHK022: value-defined-twice."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file, listed
from torchferry.edits.check import DropRepeatedNodes
from torchferry.records import Case, Job, findings


class ValueDefinedTwice(FindingRule[findings.ValueDefinedTwice]):
    """Two nodes give a value of the same name

    ## What happened
    In a graph each name stands for one value. Here it is made twice, so readers of it could mean either.
    ## Do instead
    Rename one of them, and its readers, in the tool that made the file.
    ## Repair safety
    Safe: offered only where both nodes compute the same thing, so that one can go.
    """

    code, severity = "CHK022", "error"

    def message(self, finding: findings.ValueDefinedTwice) -> str:
        nodes = finding.nodes
        other = f"by {listed(nodes)}" if len(nodes) > 1 else f"by {listed(nodes)} and as an input or initializer"
        return f"the value `{finding.value}` is defined twice: {other}"

    def help(self, finding: findings.ValueDefinedTwice) -> str:
        return "rename one of them and its readers; which one each reader means cannot be told from the file"

    def offers(self, case: Case, finding: findings.ValueDefinedTwice) -> Iterator[Offer]:
        if finding.same:
            yield "drop the repetition", DropRepeatedNodes(), "safe"


def bad() -> Job:
    import onnx

    path = example_file(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) '
        "{ [a] h = Relu (x) [b] t = Relu (x) [c] y = Tanh (h) }"
    )
    model = onnx.load(str(path))
    model.graph.node[1].output[0] = "h"
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
