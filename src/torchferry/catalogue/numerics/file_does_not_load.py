"""NUM015: onnxruntime does not open the file, so nothing could be compared."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class FileDoesNotLoad(Rule):
    """The runtime does not open the file, so it could not be compared with the model.

    ## What happened
    onnxruntime refused to create a session. The message is its own; where it names a node, and the file knows which line of
    the model that node came from, that line is shown.

    ## Do instead
    `torchferry check FILE` looks into a file by itself, names everything that stands in the way at once, and mends what
    can be mended. If torchferry itself made the file, write the operation at the line shown in another way; a report with
    a small model that shows it helps everybody.
    """

    code, stage, severity, since = "NUM015", "verify", "error", "0.1"
    last_resort = True  # a rule that knows why the file does not load says more
    explains = frozenset({"RUN900"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.FileNotLoaded):
            told = finding.error
            node = finding.location.onnx_node if finding.location else None
            made = case.value("translate")
            place = made.provenance.get(node) if made is not None and node is not None else None
            yield Diagnosis(
                self.code,
                "onnxruntime does not open the file" + (f": it stumbles over the node `{node}`" if node else ""),
                "`torchferry check` on the file names everything that stands in the way",
                place or Location(onnx_node=node),
                (told.strip().split("\n", 1)[0][-300:],),
            )


def bad() -> Job:
    """A file that adds a whole number to a float, compared with a model that does so rightly."""
    return _compared(whole_number=True)


def good() -> Job:
    return _compared(whole_number=False)


def _compared(*, whole_number: bool) -> Job:
    import tempfile
    from pathlib import Path

    import onnx
    import torch

    class Plus(torch.nn.Module):
        def forward(self, x):
            return x + 1

    kind = onnx.TensorProto.INT64 if whole_number else onnx.TensorProto.FLOAT
    one = onnx.helper.make_tensor("one", kind, [], [1])
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n"]) for n in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "one"], ["y"], name="plus")], "g", [x], [y], [one])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    path = Path(tempfile.mkdtemp()) / "plus.onnx"
    path.write_bytes(model.SerializeToString())
    return Job(Plus(), (torch.randn(4),), onnx=path)
