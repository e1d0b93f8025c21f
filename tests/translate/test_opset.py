"""What was asked for is what comes out, or a finding that says why not."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from tests.translate.made import agree, case

from torchferry.records.findings import OpsetCannotExpress
from torchferry.translate import translate


def convolutions() -> torch.nn.Module:
    layers = [torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.BatchNorm2d(4)]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64, 5)).eval()


def normed() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Softmax(0)).eval()


@pytest.mark.parametrize("opset", [11, 13, 15, 17, 18, 20, 21, 23])
@pytest.mark.parametrize(("model", "shape"), [(convolutions, (2, 3, 8, 8)), (normed, (2, 8))])
def test_the_opset_asked_for_comes_out_and_computes_the_same(
    model: object, shape: tuple[int, ...], opset: int, tmp_path: Path
) -> None:
    made = agree(model(), (torch.randn(shape),), tmp_path, ({0: "batch"},), [(torch.randn(5, *shape[1:]),)], opset=opset)  # type: ignore[operator]
    proto = onnx.load(made.path)
    assert made.opset == opset == proto.opset_import[0].version
    onnx.checker.check_model(proto, full_check=True)


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_attention_goes_down_too(opset: int, tmp_path: Path) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    agree(layer, (torch.randn(2, 5, 8),), tmp_path, ({0: "b", 1: "s"},), [(torch.randn(3, 7, 8),)], opset=opset)


def test_without_a_wish_the_lowest_opset_is_taken(tmp_path: Path) -> None:
    assert agree(torch.nn.Linear(3, 2), (torch.rand(2, 3),), tmp_path).opset == 13


def test_an_old_runtime_gets_an_ir_version_that_it_reads(tmp_path: Path) -> None:
    made = agree(normed(), (torch.rand(2, 8),), tmp_path, target="onnxruntime==1.17")
    assert onnx.load(made.path).ir_version <= 9


def test_an_opset_that_cannot_express_the_model_is_refused_with_the_line_and_the_lowest_that_can(tmp_path: Path) -> None:
    class Warp(torch.nn.Module):
        def forward(self, image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.grid_sample(image, grid, align_corners=False)

    step = translate(case(Warp(), (torch.rand(1, 2, 4, 4), torch.rand(1, 3, 3, 2)), tmp_path, opset=13))
    (finding,) = step.findings
    assert step.fault is not None
    assert finding == OpsetCannotExpress("GridSample", 13, 16, location=finding.location)
    assert finding.location is not None
    assert finding.location.file == __file__
