"""INP015."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class FileLacksAnInput(Rule):
    """The file has no input for one of the model's arguments

    ## What happened
    The model takes a tensor for which the file has no input. Exporters drop what the graph does not use: because the model
    does not look at it, or because a shortcut was taken while tracing (`if mask.all()`), and then the file is wrong for
    other values. The comparison varies the argument all the same, so the second kind shows up as a difference.

    ## Do instead
    Nothing, if the file agrees with the model. Otherwise export again without the shortcut.
    """

    code, stage, severity = "INP015", "inputs", "note"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.FileLacksInput):
            name = finding.input
            yield Diagnosis(
                self.code, f"the file has no input for the argument `{name}`", "", finding.location or Location(input_name=name)
            )


def bad() -> Job:
    """A mask that nobody looks at."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return x.relu()

    return Job(Model(), (torch.rand(2, 4), torch.ones(2, 4)), onnx=_relu())


def good() -> Job:
    """The same without a mask."""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu()

    return Job(Model(), (torch.rand(2, 4),), onnx=_relu())


def _relu() -> Path:
    import tempfile

    import onnx

    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 4]) for n in ("x", "output"))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["output"])], "relu", [x], [y])
    path = Path(tempfile.mkdtemp()) / "relu.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10), path)
    return path
