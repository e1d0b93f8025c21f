"""CHK011: unused-import-refused."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import DropImports
from torchferry.records import Case, Job, findings


class UnusedImportRefused(FindingRule[findings.UnusedImport]):
    """The file imports operators that it does not use and the runtime does not know

    ## What happened
    `opset_import` names a domain, or a version of one, that the runtime refuses. No node uses it: the entry was left behind
    by a tool.
    ## Do instead
    Remove the entry from `model.opset_import`.
    ## Repair safety
    Safe: no node is touched.
    """

    code, severity = "CHK011", "error"

    def message(self, finding: findings.UnusedImport) -> str:
        return f"opset_import names `{finding.domain}` {finding.version}, which no node uses and the runtime does not take"

    def help(self, finding: findings.UnusedImport) -> str:
        return "remove the entry"

    def offers(self, case: Case, finding: findings.UnusedImport) -> Iterator[Offer]:
        yield "drop the imports that no node uses", DropImports(), "safe"


def bad() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 99]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
