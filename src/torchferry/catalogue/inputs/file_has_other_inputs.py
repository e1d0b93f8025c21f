"""INP014."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class FileHasOtherInputs(Rule):
    """The file takes other inputs than the model

    ## What happened
    An `.onnx` file was to be compared with a model, but its inputs cannot be fed from the model's arguments: there are
    more of them, or one has another dtype, number of axes or fixed size than the example.

    ## Do instead
    Give the example with which the file was made, or the model that it was made from.
    """

    code, stage = "INP014", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.FileHasOtherInputs):
            yield Diagnosis(
                self.code,
                finding.words,
                "give the example with which the file was made",
                evidence=(f"the file takes {', '.join(finding.file)}", f"the model takes {', '.join(finding.model)}"),
            )


def bad() -> Job:
    """A file of three features for an example of four."""
    import torch

    return Job(torch.nn.ReLU(), (torch.rand(2, 4),), onnx=_relu([2, 3]))


def good() -> Job:
    """A file that fits."""
    import torch

    return Job(torch.nn.ReLU(), (torch.rand(2, 4),), onnx=_relu([2, 4]))


def _relu(shape: list[int]) -> Path:
    import tempfile

    import onnx

    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in ("input", "output"))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["input"], ["output"])], "relu", [x], [y])
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10), path)
    return path
