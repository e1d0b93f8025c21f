"""CHK032: document-refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchferry.catalogue.finding_rule import FindingRule, example_file
from torchferry.records import Case, Diagnosis, Job, findings


class DocumentRefused(FindingRule[findings.DocumentRefused]):
    """A file says what torchferry does not take from a file

    ## What happened
    torchferry writes a few words of its own beside and into what it exports: `torchferry.json` in a directory that generates,
    the settings that a session needs (`pkg.torchferry.session`) and the certificate (`pkg.torchferry.certificate`) in the
    metadata of a file. It reads back what it writes there, each entry of its type and within its range, and nothing else: a file
    that could name a library would run code, and one that could set any option of a session would write files. The same holds
    for a `config.json` or a chat template that cannot be used as it is. Nothing of the document was used. A certificate that
    is refused certifies nothing; the file itself can be used.

    ## Do instead
    Export the model again, or put the document back as it was written. Libraries of operators come from you:
    `CausalLM.from_pretrained(directory, libraries=[...])`, or session options that you make yourself. If the file came from
    somebody else, ask why it says that.
    """

    code, severity, since = "CHK032", "error", "0.1"

    def message(self, finding: findings.DocumentRefused) -> str:
        return f"`{finding.document}` is refused: {finding.why}"

    def help(self, finding: findings.DocumentRefused) -> str:
        return "export the model again, or put it back as it was written; libraries and session options come from you alone"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for found in super().detect(case):
            harmless = isinstance(found.finding, findings.DocumentRefused) and found.finding.harmless
            yield replace(found, severity="warning" if harmless else "error")


def with_session(settings: str) -> Job:
    import onnx

    path = example_file('<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Relu (x) }')
    model = onnx.load(str(path))
    model.metadata_props.add(key="pkg.torchferry.session", value=settings)
    path.write_bytes(model.SerializeToString())
    return Job(onnx=path)


def bad() -> Job:
    """Metadata that would have a session write a file."""
    return with_session('{"config": {"session.collect_node_memory_stats_to_file": "notes.txt"}}')


def good() -> Job:
    """What torchferry itself writes there."""
    return with_session('{"disabled_optimizers": ["ConvActivationFusion"]}')
