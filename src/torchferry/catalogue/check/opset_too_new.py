"""CHK008: opset-too-new."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file, listed
from torchferry.edits.check import ConvertOpset, StampOpset
from torchferry.records import Case, Job, findings


class OpsetTooNew(FindingRule[findings.OpsetTooNew]):
    """The file's opset is newer than the runtime knows

    ## What happened
    The file is stamped with a version of the operator set that the runtime does not have yet. `onnx.helper.make_model`
    stamps the newest one that the `onnx` package knows, which is often ahead of every runtime.
    ## Do instead
    Export for a lower opset, or install a newer onnxruntime.
    ## Repair safety
    Safe: where none of the operators in use changed only the stamp is lowered; others are rewritten by onnx's version
    converter, and the result is opened, run, and compared where both run.
    """

    code, severity = "CHK008", "error"

    def message(self, finding: findings.OpsetTooNew) -> str:
        domain = finding.domain or "ai.onnx"
        changed = f"; of its operators {listed(finding.changed)} changed since" if finding.changed else ""
        return (
            f"the file has opset_import {domain} = {finding.opset}, {finding.target} knows opset {finding.most} at most{changed}"
        )

    def help(self, finding: findings.OpsetTooNew) -> str:
        return f"export with opset_version={finding.most} or lower, or use a newer onnxruntime"

    def offers(self, case: Case, finding: findings.OpsetTooNew) -> Iterator[Offer]:
        most, domain = finding.most, finding.domain
        if domain:
            yield f"stamp {domain} {most}", StampOpset(most, domain), "safe"
        else:
            yield f"convert to opset {most}", ConvertOpset(most), "safe"


def bad() -> Job:
    return Job(onnx=example_file('<ir_version: 8, opset_import: ["": 28]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
