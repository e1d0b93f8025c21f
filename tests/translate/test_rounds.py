"""Loops that go round no times, and parts whose sizes come from values, against eager."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from tests.translate.made import agree

import torchferry


class Running(torch.nn.Module):
    """A running sum from the row `first` on, with a whole number that counts rows above zero."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        state, count, seen = x[0] * 2, torch.zeros(3, dtype=torch.int64), torch.zeros_like(x)
        for t in range(self.first, x.shape[0]):
            state = state * 0.5 + x[t]
            count = count + (state > 0)
            seen[t] = state
        return state, count, seen


def _operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def test_a_scan_over_nothing_gives_back_what_it_began_with(tmp_path: Path) -> None:
    model = Running(1)
    result = torchferry.export(model, (torch.randn(4, 3),), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(result.path)
    for length in (1, 2, 6):
        x = torch.randn(length, 3)
        for want, got in zip(model(x), session.run(None, {"x": x.numpy()}), strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)


def test_a_scan_over_a_whole_input_is_left_alone(tmp_path: Path) -> None:
    result = torchferry.export(Running(0), (torch.randn(4, 3),), tmp_path / "m.onnx")
    operators = _operators(Path(str(result.path)))
    assert operators["Scan"] == 1
    assert not operators["Pad"]


def test_parts_whose_sizes_come_from_values_are_tensors_and_no_sequence(tmp_path: Path) -> None:
    def levels(values: torch.Tensor, shapes: torch.Tensor) -> list[torch.Tensor]:
        parts = values.split([h * w for h, w in shapes.tolist()], dim=1)
        return [part.transpose(1, 2) * 2 for part in parts]

    def inputs(*shapes: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(2, sum(h * w for h, w in shapes), 3), torch.tensor(shapes)

    agree(levels, inputs((2, 3), (2, 2)), tmp_path, ({1: "n"}, {}), others=[inputs((1, 5), (3, 4)), inputs((4, 1), (1, 1))])
