"""CHK007: ir-version-too-new."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import SetIr
from torchferry.records import Case, Job, findings


class IrVersionTooNew(FindingRule[findings.IrTooNew | findings.IrMissing]):
    """The file's IR version is newer than the runtime reads

    ## What happened
    Each file is stamped with the version of the file format. A newer `onnx` package stamps a version that an older runtime
    refuses, though the graph may use nothing new.
    ## Do instead
    Save with a lower `ir_version`, or install a newer onnxruntime.
    ## Repair safety
    Safe: only the stamp changes; the file is opened and run afterwards.
    """

    code, severity = "CHK007", "error"

    def message(self, finding: findings.IrTooNew | findings.IrMissing) -> str:
        if isinstance(finding, findings.IrMissing):
            return "the file has no ir_version stamp"
        return f"the file has ir_version {finding.ir}, {finding.target} reads at most IR version {finding.most}"

    def help(self, finding: findings.IrTooNew | findings.IrMissing) -> str:
        return f"set `model.ir_version = {_to(finding)}` before saving, or use a newer onnxruntime"

    def offers(self, case: Case, finding: findings.IrTooNew | findings.IrMissing) -> Iterator[Offer]:
        yield f"stamp IR version {_to(finding)}", SetIr(_to(finding)), "safe"


def _to(finding: findings.IrTooNew | findings.IrMissing) -> int:
    return finding.to if isinstance(finding, findings.IrMissing) else finding.most


def bad() -> Job:
    return Job(
        onnx=example_file('<ir_version: 99, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }')
    )


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
