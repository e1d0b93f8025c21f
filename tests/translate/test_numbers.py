"""A number in front of a tensor keeps its meaning, also where the types have to be promoted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import torchferry
from torchferry.translate.numbers import numbers_as_tensors


class Flipped(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x + torch.rsub(mask, 1.0)[:, None] * -1e4 + (2 - mask)[:, None] / 3


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_a_number_minus_a_tensor_agrees(dtype: torch.dtype, tmp_path: Path) -> None:
    model = Flipped()
    result = torchferry.export(model, (torch.randn(2, 3), torch.tensor([0, 1]).to(dtype)), tmp_path / "m.onnx")
    x, mask = torch.randn(4, 3), torch.tensor([1, 0, 0, 1]).to(dtype)
    got = torchferry.InferenceSession(str(result.path)).run(None, result.feeds((x, mask)))[0]
    np.testing.assert_allclose(got, model(x, mask), rtol=1e-5)


def test_a_number_in_the_place_of_a_tensor_becomes_one_of_the_type_computed_in() -> None:
    with torch._subclasses.FakeTensorMode():
        value = torch.ones(3, dtype=torch.int64)
    graph = torch.fx.Graph()
    mask = graph.placeholder("mask")
    mask.meta["val"] = value
    node = graph.call_function(torch.ops.aten.sub.Tensor, (1.0, mask))
    graph.output(node)
    numbers_as_tensors(graph)
    made = node.args[0]
    assert made.target is torch.ops.aten.scalar_tensor.default
    assert made.meta["val"].dtype is torch.float32
