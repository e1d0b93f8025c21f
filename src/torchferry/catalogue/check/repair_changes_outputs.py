"""CHK031: repair-changes-outputs."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.edits.check import StampOpset
from torchferry.records import Job, findings


class RepairChangesOutputs(FindingRule[findings.OutputsChanged]):
    """A repair of the file changes what it computes

    ## What happened
    The file runs as it is, and with the repairs of the recipe it gives something else on the same feed. Such a repair is
    never kept; a recipe that was written for another file can ask for one. A lower opset stamp, say, gives Softmax another
    meaning.
    ## Do instead
    Leave that repair out of the recipe.
    """

    code, severity = "CHK031", "error"

    def message(self, finding: findings.OutputsChanged) -> str:
        return f"with the repairs made so far, feed {finding.feed} gives something else than the file itself: {finding.words}"

    def help(self, finding: findings.OutputsChanged) -> str:
        return "leave the last repair out"


def bad() -> Job:
    return Job(onnx=example_file(TEXT), edits=(StampOpset(12),))


def good() -> Job:
    return Job(onnx=example_file(TEXT), edits=(StampOpset(14),))


TEXT = '<ir_version: 8, opset_import: ["": 13]> g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax (x) }'
