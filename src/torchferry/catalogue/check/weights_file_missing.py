"""CHK004: weights-file-missing."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file_with_data, listed
from torchferry.records import Job, findings


class WeightsFileMissing(FindingRule[findings.WeightsMissing]):
    """The file that holds the weights is not beside the model

    ## What happened
    The model keeps its weights in a second file, and that file is not there: it was not copied along, or renamed.
    ## Do instead
    Put it beside the model under the name that the model gives it, or export the model again.
    """

    code, severity = "CHK004", "error"

    def message(self, finding: findings.WeightsMissing) -> str:
        return (
            f"the weights {listed(finding.weights.tensors)} are kept in `{finding.weights.data}`, which does "
            f"not exist (at least {finding.weights.needs} bytes)"
        )

    def help(self, finding: findings.WeightsMissing) -> str:
        return f"copy `{finding.weights.data}` next to the model; it is written together with it"


def bad() -> Job:
    path = example_file_with_data()
    path.with_name("model.onnx.data").unlink()
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file_with_data())
