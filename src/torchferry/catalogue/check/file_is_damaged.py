"""CHK003: file-is-damaged."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_file, example_folder
from torchferry.records import Job, findings


class FileIsDamaged(FindingRule[findings.NotAModel]):
    """The file is cut short or damaged

    ## What happened
    It begins as an ONNX model but does not go on as one: the download or copy broke off, the disk was full, or bytes were
    changed (a transfer as text does that).
    ## Do instead
    Fetch it again and compare size and checksum with the source. A model of more than 2 GB must keep its weights in a
    second file.
    """

    code, severity = "CHK003", "error"

    def concerns(self, finding: findings.NotAModel) -> bool:
        return finding.file.kind in ("truncated", "damaged", "empty", "no-graph", "over-two-gigabytes")

    def message(self, finding: findings.NotAModel) -> str:
        file, name = finding.file, finding.name
        match file.kind:
            case "empty":
                return f"`{name}` is empty: zero bytes"
            case "truncated" if file.needs:
                return (
                    f"`{name}` is truncated: the graph (field 7 of the protobuf) needs {file.needs} "
                    f"bytes, the file has {file.size} bytes"
                )
            case "truncated":
                return f"`{name}` is truncated"
            case "no-graph":
                return f"`{name}` has no graph: it ends before the model begins"
            case "over-two-gigabytes":
                return f"`{name}` has {file.size} bytes: a protobuf file cannot be longer than 2 GB"
        return f"`{name}` is damaged: it begins as an ONNX model and does not go on as one"

    def help(self, finding: findings.NotAModel) -> str:
        if finding.file.kind == "over-two-gigabytes":
            return "save it again with the weights in a file beside it (`onnx.save_model(..., save_as_external_data=True)`)"
        return "fetch or write the file again, and compare its size and checksum with the source"

    def evidence(self, finding: findings.NotAModel) -> tuple[str, ...]:
        return tuple(words for words in (finding.file.error, finding.file.what) if words is not None)


def bad() -> Job:
    path = example_file(TEXT)
    path.write_bytes(path.read_bytes()[:-20])
    return Job(onnx=path)


def bad_empty() -> Job:
    path = example_folder() / "model.onnx"
    path.write_bytes(b"")
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file(TEXT))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
