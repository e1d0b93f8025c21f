"""CHK005: weights-file-elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, as_guess, example_file_with_data, listed
from torchferry.edits.check import RelocateData
from torchferry.records import Case, Job, findings


class WeightsFileElsewhere(FindingRule[findings.WeightsElsewhere]):
    """The model looks for its weights in the wrong place

    ## What happened
    The path of the weights file in the model is absolute, written for Windows, leads out of the model's folder, or names a
    file that is there under another name. ONNX Runtime reads weights only from the model's own folder.
    ## Do instead
    Write the plain file name into the model (`external_data` of each tensor), or rename the weights file.
    ## Repair safety
    Safe: only the path changes. It is offered when the one file of the recorded name, and just as long as the weights, lies
    beside the model, or in the folder that is recorded; or one whose checksum the model records, in itself or in its
    certificate. Any other file, though it is of the very size, is a guess.
    """

    code, severity = "CHK005", "error"

    def message(self, finding: findings.WeightsElsewhere) -> str:
        why = WHY[finding.trouble]
        return f"the weights {listed(finding.weights.tensors)} are looked for in `{finding.weights.data}`, {why}"

    def help(self, finding: findings.WeightsElsewhere) -> str:
        if finding.found and not finding.guess:
            return f"`{finding.found}` beside the model is the file: write that name into the model"
        return (
            f"put the weights file ({finding.weights.needs} bytes or more) beside the model "
            "and write its plain name into the model"
        )

    def offers(self, case: Case, finding: findings.WeightsElsewhere) -> Iterator[Offer]:
        title = f"read the weights from `{finding.found}`"
        if finding.found and finding.guess:
            yield as_guess(title, RelocateData({finding.weights.data: finding.found}), finding.guess)
            return
        moves = {f.weights.data: f.found for f in self.found(case) if f.found and not f.guess}
        if moves:
            yield title, RelocateData(moves), "safe"


WHY = {
    "missing": "which does not exist",
    "absolute": "an absolute path: the external_data location must be a name in the model's folder",
    "backslash": "a path with backslashes, which only Windows reads as folders",
    "outside": "which is outside the model's folder and is refused",
    "empty": "which is no path",
}


def bad() -> Job:
    import onnx

    path = example_file_with_data()
    model = onnx.load(str(path), load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = "/builds/out/model.onnx.data" if entry.key == "location" else entry.value
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file_with_data())
