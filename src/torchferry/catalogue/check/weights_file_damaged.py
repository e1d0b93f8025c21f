"""CHK006: weights-file-damaged."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file_with_data, listed
from torchferry.records import Finding, Job

WHAT_IT_IS = {"external-data-pointer": "a git-lfs pointer", "external-data-page": "a web page"}


class WeightsFileDamaged(FindingRule):
    """The file that holds the weights is cut short, a git-lfs pointer, or a web page

    ## What happened
    The weights file is smaller than the model needs; or it is the text that git-lfs leaves in place of a large file, or the
    page on which a server said no. ONNX Runtime loads such text as weights, without a word, when it is long enough.
    ## Do instead
    Fetch the weights file again (`git lfs pull`, or a download that is logged in).
    """

    code, severity = "CHK006", "error"
    kinds = (
        "external-data-pointer",
        "external-data-page",
        "external-data-truncated",
    )

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        if (what := WHAT_IT_IS.get(finding.kind)) is not None:
            return (
                f"`{facts['data']}`, which should hold the weights {listed(facts['tensors'])}, "
                f"is {what}: its text would be read as weights"
            )
        return (
            f"`{facts['data']}` is truncated: it has {facts['size']} bytes, the weights {listed(facts['short'])} "
            f"need {facts['needs']}"
        )

    def help(self, finding: Finding) -> str:
        if finding.kind == "external-data-pointer":
            return "run `git lfs pull` where it came from, or download the file itself"
        if finding.kind == "external-data-page":
            return "open it in an editor to read what the server said, and download the file itself"
        return "copy or download it again; compare its size with the source"

    def evidence(self, finding: Finding) -> tuple[str, ...]:
        return ("it starts with version https://git-lfs...",) if finding.kind == "external-data-pointer" else ()


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
