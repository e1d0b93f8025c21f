"""CHK026: graph-has-cycle."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file, listed
from torchferry.records import Finding, Job


class GraphHasCycle(FindingRule):
    """Nodes wait for each other in a ring

    ## What happened
    A node needs, by way of others, its own result. A graph cannot say that; recurrence is written with Loop or Scan.
    ## Do instead
    Cut the ring where the edit that made the file closed it.
    """

    code, severity = "CHK026", "error"
    kinds = ("cycle",)

    def message(self, finding: Finding) -> str:
        return f"the graph is not acyclic: {listed(finding.facts['nodes'])} need each other's results"

    def help(self, finding: Finding) -> str:
        return "correct the input that closes the ring"


def bad() -> Job:
    import onnx

    path = example_file(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { [a] h = Add (x, x) [b] y = Relu (h) }'
    )
    model = onnx.load(str(path))
    model.graph.node[0].input[1] = "y"
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
