"""CHK025: output-nobody-makes."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, as_guess, example_file, listed
from torchferry.edits.check import RenameOutput
from torchferry.records import Case, Job, findings


class OutputNobodyMakes(FindingRule[findings.DanglingOutput]):
    """The file promises an output that no node gives

    ## What happened
    The name of a graph output does not occur in the graph: the node's output was renamed, or the output was.
    ## Do instead
    Give both the same name.
    ## Repair safety
    A guess: where just one value of that type is made and read by nobody, it may be the one; or the node that made the output
    was lost, and this is what it read.
    """

    code, severity = "CHK025", "error"

    def message(self, finding: findings.DanglingOutput) -> str:
        spare = finding.spare
        return f"the output `{finding.value}` is made by no node" + (f"; read by nobody: {listed(spare)}" if spare else "")

    def help(self, finding: findings.DanglingOutput) -> str:
        return "name the output as the node that makes it does"

    def offers(self, case: Case, finding: findings.DanglingOutput) -> Iterator[Offer]:
        if (take := finding.take) is not None:
            edit = RenameOutput(take, finding.value)
            yield as_guess(f"give `{take}` that name", edit, "a node behind it may have been lost")


def bad() -> Job:
    import onnx

    path = example_file('<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { [head] y = Relu (x) }')
    model = onnx.load(str(path))
    model.graph.output[0].name = "logits"
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
