"""CHK001: file-is-no-model."""

from __future__ import annotations

from dataclasses import fields

from torchferry.catalogue.finding_rule import FindingRule, example_file, example_folder, listed
from torchferry.records import Job, findings


class FileIsNoModel(FindingRule[findings.NotAModel]):
    """The file is not an ONNX model

    ## What happened
    Something else bears the name: the pointer that git-lfs leaves in place of a large file, a web page that was downloaded
    instead of the file behind it, a PyTorch checkpoint, safetensors, or another tool's model. ONNX Runtime says `Protobuf
    parsing failed` to all.
    ## Do instead
    Fetch the real file (`git lfs pull`, the download link of the file and not of its page), or convert the model: a
    checkpoint holds weights only, `torchferry export` makes a model of them.
    """

    code, severity = "CHK001", "error"

    def concerns(self, finding: findings.NotAModel) -> bool:
        return finding.file.kind in SAYS

    def message(self, finding: findings.NotAModel) -> str:
        seen = finding.file.kind not in ("missing", "unreadable")
        return f"`{finding.name}` is {_said(finding.file, 0)}" + (", not an ONNX model" if seen else "")

    def help(self, finding: findings.NotAModel) -> str:
        return _said(finding.file, 1)

    def evidence(self, finding: findings.NotAModel) -> tuple[str, ...]:
        seen = _said(finding.file, 2)
        return (seen,) if seen else ()


def _said(file: findings.Sniffed, index: int) -> str:
    """Return one of the sentences about a file, with what was seen of it; what was not reads as unknown."""
    return SAYS[file.kind][index].format_map({f.name: _word(getattr(file, f.name)) for f in fields(file)})


def _word(seen: tuple[str, ...] | str | int | None) -> str | int:
    if isinstance(seen, tuple):
        return listed(seen) or "there is none"
    return "unknown" if seen is None else seen


CONVERT = "export the model it belongs to with `torchferry export`; renaming a file does not convert it"
# kind: (what it is, what to do, what was seen)
SAYS: dict[findings.FileKind, tuple[str, str, str]] = {
    "git-lfs-pointer": (
        "a git-lfs pointer for a {size}-byte object",
        "run `git lfs install && git lfs pull` where it came from, or download the file itself",
        "first line: version https://git-lfs...",
    ),
    "web-page": (
        "a web page",
        "download the file itself (the `raw` or `resolve` link), logged in if that is needed",
        "it starts as HTML does; title: {title}",
    ),
    "torch-checkpoint": (
        "a PyTorch checkpoint ({format})",
        CONVERT,
        "zip magic PK or a pickle, archive member data.pkl: {member}",
    ),
    "safetensors": ("a safetensors file of {tensors} tensors: weights without a model", CONVERT, "a safetensors header in JSON"),
    "other-format": ("{format}", "convert it with that framework's exporter (tf2onnx, ...)", "told from its first bytes"),
    "xml": ("an XML file, such as OpenVINO's .xml", "use the .onnx that it was made from", "it starts with <?xml"),
    "zip": ("a zip archive with no single .onnx in it", "unpack it and name the model", "members: {members}"),
    "tar": ("a tar archive with no single .onnx in it", "unpack it and name the model", "members: {members}"),
    "json": ("JSON text", "find the .onnx that this describes", "it starts with {begins}"),
    "text": ("text", "find the file that this stands for; a download may have failed", "it starts with {begins}"),
    "directory": ("a directory", "name the .onnx in it: {inside}", ".onnx files in it: {inside}"),
    "missing": ("not there", "check the path: {path}", "no such file: {path}"),
    "unreadable": ("not readable ({error})", "look at what it is, and at its permissions", "{error}"),
    "not-a-model": (
        "a file of some other kind",
        "check where it came from; it may be encrypted, packed or damaged",
        "no field of a model at byte {at} of {size}",
    ),
}


def bad() -> Job:
    path = example_folder() / "model.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:3b3b3b\nsize 53412864\n")
    return Job(onnx=path)


def bad_web_page() -> Job:
    path = example_folder() / "model.onnx"
    path.write_text("<!DOCTYPE html><html><head><title>Sign in</title></head></html>")
    return Job(onnx=path)


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
