"""What decomposition and translation may lose: sizes of outputs, compared between the captured program and the graph."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch

import torchferry
from torchferry.translate.generality import lost


class Pooled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.nn.functional.avg_pool1d(x, 2), torch.cat([x, x], 2)


@pytest.fixture(scope="module")
def made() -> torchferry.Result:
    return torchferry.export(Pooled(), (torch.rand(2, 3, 8),))


def found(result: torchferry.Result, path: Path) -> list[tuple[str, int, int]]:
    case = result.history.best
    program = case.value("capture").program
    return [(f.output, f.axis, f.fixed) for f in lost(path, program, case.value("inputs"), {})]


def test_a_graph_as_general_as_its_program_is_not_doubted(made: torchferry.Result) -> None:
    assert made.path is not None
    assert found(made, made.path) == []


@pytest.mark.parametrize(("target", "expected"), [([2, 3, 16], [0, 1, 2]), ([-1, 3, 16], [1, 2]), ([0, 3, -1], [1])])
def test_sizes_that_a_graph_fixes_are_found(
    made: torchferry.Result, tmp_path: Path, target: list[int], expected: list[int]
) -> None:
    model = onnx.load(str(made.path))
    last = next(n for n in model.graph.node if "output_1" in n.output)
    last.output[0] = "before"
    shape = onnx.helper.make_node("Constant", [], ["target"], value_ints=target)
    model.graph.node.extend([shape, onnx.helper.make_node("Reshape", ["before", "target"], ["output_1"])])
    onnx.save(model, str(tmp_path / "baked.onnx"))
    assert [axis for name, axis, _ in found(made, tmp_path / "baked.onnx") if name == "output_1"] == expected
