"""CHK004: weights-file-missing."""

from __future__ import annotations

from pathlib import Path

from torchferry.catalogue.finding_rule import FindingRule, example_folder, listed
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
    path = _saved()
    path.with_name("model.onnx.data").unlink()
    return Job(onnx=path)


def _saved() -> Path:
    import onnx

    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 2}> { y = Add (x, w) }'
    )
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(model.graph.initializer[0]), "w"))
    path = example_folder() / "model.onnx"
    onnx.save_model(model, str(path), save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    return path


def good() -> Job:
    return Job(onnx=_saved())
