"""CHK006: weights-file-damaged."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file_with_data, listed
from torchferry.records import Job, findings

Damaged = findings.WeightsArePointer | findings.WeightsArePage | findings.WeightsTruncated


class WeightsFileDamaged(FindingRule[Damaged]):
    """The file that holds the weights is cut short, a git-lfs pointer, or a web page

    ## What happened
    The weights file is smaller than the model needs; or it is the text that git-lfs leaves in place of a large file, or the
    page on which a server said no. ONNX Runtime loads such text as weights, without a word, when it is long enough.
    ## Do instead
    Fetch the weights file again (`git lfs pull`, or a download that is logged in).
    """

    code, severity = "CHK006", "error"

    def message(self, finding: Damaged) -> str:
        weights = finding.weights
        if isinstance(finding, findings.WeightsTruncated):
            return (
                f"`{weights.data}` is truncated: it has {finding.size} bytes, the weights {listed(finding.short)} "
                f"need {weights.needs}"
            )
        what = "a git-lfs pointer" if isinstance(finding, findings.WeightsArePointer) else "a web page"
        return (
            f"`{weights.data}`, which should hold the weights {listed(weights.tensors)}, "
            f"is {what}: its text would be read as weights"
        )

    def help(self, finding: Damaged) -> str:
        if isinstance(finding, findings.WeightsArePointer):
            return "run `git lfs pull` where it came from, or download the file itself"
        if isinstance(finding, findings.WeightsArePage):
            return "open it in an editor to read what the server said, and download the file itself"
        return "copy or download it again; compare its size with the source"

    def evidence(self, finding: Damaged) -> tuple[str, ...]:
        return ("it starts with version https://git-lfs...",) if isinstance(finding, findings.WeightsArePointer) else ()


def bad() -> Job:
    path = example_file_with_data()
    path.with_name("model.onnx.data").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:3b\nsize 8\n")
    return Job(onnx=path)


def bad_page() -> Job:
    path = example_file_with_data()
    path.with_name("model.onnx.data").write_text("<!DOCTYPE html><html><body>Please log in.</body></html>")
    return Job(onnx=path)


def bad_truncated() -> Job:
    path = example_file_with_data()
    path.with_name("model.onnx.data").write_bytes(b"1234")
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file_with_data())
