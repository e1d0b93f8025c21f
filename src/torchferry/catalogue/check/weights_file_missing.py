"""CHK004: weights-file-missing."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file_with_data, listed
from torchferry.records import Finding, Job


class WeightsFileMissing(FindingRule):
    """The file that holds the weights is not beside the model

    ## What happened
    The model keeps its weights in a second file, and that file is not there: it was not copied along, or renamed.
    ## Do instead
    Put it beside the model under the name that the model gives it, or export the model again.
    """

    code, severity = "CHK004", "error"
    kinds = ("external-data-missing",)

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        return (
            f"the weights {listed(facts['tensors'])} are kept in `{facts['data']}`, which does "
            f"not exist (at least {facts['needs']} bytes)"
        )

    def help(self, finding: Finding) -> str:
        return f"copy `{finding.facts['data']}` next to the model; it is written together with it"


def bad() -> Job:
    path = example_file_with_data()
    path.with_name("model.onnx.data").unlink()
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file_with_data())
