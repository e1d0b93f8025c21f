"""CHK027: initializer-of-wrong-size."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file
from torchferry.records import Job, findings


class InitializerOfWrongSize(FindingRule[findings.InitializerSize | findings.InitializerType]):
    """A stored tensor does not hold what its dims say

    ## What happened
    The number of bytes is not what dims and type need: the dims or the type were edited, or data were lost.
    ## Do instead
    Write the tensor again with `onnx.numpy_helper.from_array`.
    """

    code, severity = "CHK027", "error"

    def message(self, finding: findings.InitializerSize | findings.InitializerType) -> str:
        if isinstance(finding, findings.InitializerType):
            return f"{_which(finding)} has the element type {finding.type}, which does not exist"
        dims = f"dims {list(finding.dims)} of {finding.type} " if finding.dims is not None else "dims "
        return f"{_which(finding)} has the wrong size: its {dims}need {finding.needs} bytes, it has {finding.has}"

    def help(self, finding: findings.InitializerSize | findings.InitializerType) -> str:
        return "write the tensor again; which of dims and data is right cannot be told from the file"


def _which(finding: findings.InitializerSize | findings.InitializerType) -> str:
    """Return what to call the tensor: those in attributes have no name of their own worth telling."""
    node = finding.location.onnx_node if finding.location is not None else None
    return f"the initializer `{finding.tensor}`" if node is None else f"the tensor stored in {at(finding)}"


def bad() -> Job:
    import onnx

    path = example_file(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) '
        "<float[3] w = {1, 2, 3}> { [add] y = Add (x, w) }"
    )
    model = onnx.load(str(path))
    del model.graph.initializer[0].float_data[2:]
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
