"""CHK002: model-in-other-wrapping."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import ReadAs
from torchferry.records import Case, Job, findings


class ModelInOtherWrapping(FindingRule[findings.NotAModel]):
    """The file holds a model, but not in the form that runtimes read

    ## What happened
    The model is packed (gzip, bzip2, xz, zip, tar), written as text or JSON, or in ONNX Runtime's own format under a name
    that says otherwise.
    ## Do instead
    Unpack or convert the file; for ONNX Runtime's format keep the ending `.ort`, for ONNX `.onnx`.
    ## Repair safety
    Safe: the same model is read from the file as it is and written as plain ONNX; nothing in it changes.
    """

    code, severity = "CHK002", "error"

    def concerns(self, finding: findings.NotAModel) -> bool:
        return finding.file.kind in SAYS

    def message(self, finding: findings.NotAModel) -> str:
        return f"`{finding.name}` holds a model {SAYS[finding.file.kind]}"

    def help(self, finding: findings.NotAModel) -> str:
        return "write it as plain binary ONNX under a name that ends in .onnx (ONNX Runtime's own format: .ort)"

    def offers(self, case: Case, finding: findings.NotAModel) -> Iterator[Offer]:
        kind = finding.file.kind
        yield "read it as what it is", ReadAs("onnx" if kind == "onnx-named-ort" else kind), "safe"


SAYS: dict[findings.FileKind, str] = {
    "gzip": "packed with gzip (its bytes start with 1f 8b)",
    "bzip2": "packed with bzip2 (its bytes start with BZh)",
    "xz": "packed with xz",
    "zip-with-model": "inside a zip archive",
    "tar-with-model": "inside a tar archive",
    "text-proto": "as protobuf text (ASCII, it starts with 'ir_version:' or the like)",
    "model-as-json": "as JSON",
    "onnx-text": "in onnx's text form",
    "ort-format": "in ONNX Runtime's own format (ORTM), though it is not named .ort",
    "onnx-named-ort": "in ONNX format, though its name ends in .ort, so that ONNX Runtime reads it as its own format",
}


def bad() -> Job:
    import gzip

    path = example_file(TEXT)
    path.write_bytes(gzip.compress(path.read_bytes()))
    return Job(onnx=path)


def good() -> Job:
    return Job(onnx=example_file(TEXT))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
