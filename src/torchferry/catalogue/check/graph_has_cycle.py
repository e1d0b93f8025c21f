"""CHK026: graph-has-cycle."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, listed
from torchferry.records import Job, findings


class GraphHasCycle(FindingRule[findings.GraphCycle | findings.RecursiveFunctions]):
    """Nodes wait for each other in a ring

    ## What happened
    A node needs, by way of others, its own result; or a function of the file calls, by way of others, itself. A graph cannot
    say that; recurrence is written with Loop or Scan.
    ## Do instead
    Cut the ring where the edit that made the file closed it.
    """

    code, severity = "CHK026", "error"

    def message(self, finding: findings.GraphCycle | findings.RecursiveFunctions) -> str:
        if isinstance(finding, findings.RecursiveFunctions):
            return f"{at(finding)} calls functions that call themselves: {listed(finding.functions)}"
        return f"the graph is not acyclic: {listed(finding.nodes)} need each other's results"

    def help(self, finding: findings.GraphCycle | findings.RecursiveFunctions) -> str:
        if isinstance(finding, findings.RecursiveFunctions):
            return "write the recursion as a Loop, or correct the call that closes the ring"
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


def bad_functions() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18, "my": 1]> g (float[N, 3] x) => (float[N, 3] y) { [call] y = my.a (x) }
        <domain: "my", opset_import: ["my": 1]> a (x) => (y) { y = my.b (x) }
        <domain: "my", opset_import: ["my": 1]> b (x) => (y) { y = my.a (x) }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
