"""CHK024: value-nobody-makes."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file
from torchferry.records import Job, findings


class ValueNobodyMakes(FindingRule[findings.DanglingInput]):
    """A node reads a value that nothing makes

    ## What happened
    The name is no input, no initializer and no node's output: a weight was dropped, or a name misspelt, when the file was
    edited.
    ## Do instead
    Take the file as it was before the edit, or add what is missing.
    """

    code, severity = "CHK024", "error"

    def message(self, finding: findings.DanglingInput) -> str:
        return f"{at(finding)} reads `{finding.value}`, which is no input, initializer or output of a node{finding.hint}"

    def help(self, finding: findings.DanglingInput) -> str:
        return "add the missing weight or input, or correct the name"


def bad() -> Job:
    import onnx

    path = example_file('<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { [fc] y = Add (x, x) }')
    model = onnx.load(str(path))
    model.graph.node[0].input[1] = "fc.bias"
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
