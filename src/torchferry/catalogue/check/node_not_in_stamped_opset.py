"""CHK010: node-not-in-stamped-opset."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import Decompose, StampOpset
from torchferry.records import Case, Job, findings


class NodeNotInStampedOpset(FindingRule[findings.NodeNotInOpset]):
    """A node is not valid under the opset that the file is stamped with

    ## What happened
    The file says opset 13, but a node is written as a later (or earlier) opset has it: another number of inputs, an
    attribute that became an input, an operator that came later or was withdrawn. Tools that edit graphs leave such files
    behind.
    ## Do instead
    Stamp the opset that the nodes are written for, or write the node in the form of the stamped one.
    ## Repair safety
    Safe where one opset fits every node and none of them means something else under it; the nearest is taken. Where another
    stamp would change what, say, Softmax means, the odd node is written out in operators of the stamped opset, under which
    the others keep their meaning; where that cannot be done, a new stamp is unsafe.
    """

    code, severity = "CHK010", "error"

    def message(self, finding: findings.NodeNotInOpset) -> str:
        return f"{at(finding)} does not fit opset {finding.stamped}: {finding.why}"

    def help(self, finding: findings.NodeNotInOpset) -> str:
        if (fits := finding.fits) is not None:
            return f"stamp opset {fits}, the nearest under which every node is valid"
        return "no opset fits all nodes: rewrite this node in the form of the stamped opset"

    def offers(self, case: Case, finding: findings.NodeNotInOpset) -> Iterator[Offer]:
        recipes = tuple(node(f) for f in self.found(case) if f.recipe and f.location)
        write_out: Offer = ("write the node out in operators of the stamped opset", Decompose(recipes), "safe")
        if finding.fits is not None:
            lower = finding.fits < finding.stamped and len(recipes) == len(self.found(case))
            if recipes and (lower or not finding.keeps):  # a lower stamp is one for all the other nodes too
                yield write_out
            yield f"stamp opset {finding.fits}", StampOpset(finding.fits), "safe" if finding.keeps else "unsafe"
        if recipes:
            yield write_out


def bad() -> Job:
    text = '<ir_version: 8, opset_import: ["": 13]> g (float[N, 3] x) => (float[N, 3] y) { y = Gelu (x) }'
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
