"""CHK041: mend-is-a-guess."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import GUESS, FindingRule, example_file
from torchferry.edits.check import SetIr
from torchferry.records import Job, findings


class MendIsAGuess(FindingRule[findings.MendNotShown]):
    """The file was mended by a guess

    ## What happened
    Without the model there is only the file to ask. A repair is made by itself where running the file shows it to be right:
    bit for bit the same at the sizes that it took before, row by row at new batch sizes, the same in the standard's own
    evaluator, weights of the very name and length, or of the hash, that the model records. This one is only likely: nothing
    that was run shows it. So the file may work, and may be wrong; it is never reported as ok.
    ## Do instead
    Export the model again, or compare the mended file with the model: `torchferry verify`.
    """

    code, severity = "CHK041", "error"

    def message(self, finding: findings.MendNotShown) -> str:
        return f"{GUESS}: {finding.what}; {finding.why}"

    def help(self, finding: findings.MendNotShown) -> str:
        return "compare the file with the model it was made from (`torchferry verify`), or export the model again"


def bad() -> Job:
    return Job(onnx=example_file(TEXT), edits=(SetIr(7, guess="nobody has run it"),))


def good() -> Job:
    return Job(onnx=example_file(TEXT), edits=(SetIr(7),))


TEXT = '<ir_version: 8, opset_import: ["": 13]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
