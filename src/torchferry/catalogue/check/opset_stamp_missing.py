"""CHK009: opset-stamp-missing."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import StampOpset
from torchferry.records import Case, Job, findings


class OpsetStampMissing(FindingRule[findings.OpsetMissing]):
    """The file does not say which opset it is written for

    ## What happened
    `opset_import` has no entry for the standard operators, so a runtime cannot know what the nodes mean.
    ## Do instead
    Write the model with `onnx.helper.make_model(..., opset_imports=[...])`.
    ## Repair safety
    Safe: the newest opset under which every node is valid is stamped, and the file is opened and run.
    """

    code, severity = "CHK009", "error"

    def message(self, finding: findings.OpsetMissing) -> str:
        return "the file has no opset_import for the standard operators (ai.onnx)"

    def help(self, finding: findings.OpsetMissing) -> str:
        return "add `onnx.helper.make_opsetid('', N)` with the opset the nodes were written for"

    def offers(self, case: Case, finding: findings.OpsetMissing) -> Iterator[Offer]:
        if (to := finding.to) is not None:
            yield f"stamp opset {to}, under which every node is valid", StampOpset(to), "safe"


def bad() -> Job:
    import onnx

    path = example_file(TEXT)
    model = onnx.load(str(path))
    del model.opset_import[:]
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file(TEXT))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
