"""CHK028: initializer-stored-twice."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Job, findings


class InitializerStoredTwice(FindingRule[findings.DuplicateInitializer]):
    """Two stored tensors have the same name

    ## What happened
    ONNX Runtime takes the last one, without a word; other tools may take the first.
    ## Do instead
    Keep one of them.
    """

    code, severity = "CHK028", "error"

    def concerns(self, finding: findings.DuplicateInitializer) -> bool:
        return not finding.same

    def message(self, finding: findings.DuplicateInitializer) -> str:
        return (
            f"{finding.count} initializers are named `{finding.tensor}` and "
            "hold different numbers; ONNX Runtime silently takes the last"
        )

    def help(self, finding: findings.DuplicateInitializer) -> str:
        return "keep the one that is meant"


def bad() -> Job:
    import onnx

    path = example_file(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) '
        "<float[3] w = {1, 2, 3}, float[3] v = {4, 5, 6}> { [add] y = Add (x, w) }"
    )
    model = onnx.load(str(path))
    model.graph.initializer[1].name = "w"
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
