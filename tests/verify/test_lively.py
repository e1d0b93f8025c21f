"""Weights are redrawn on both sides alike, or on neither."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import torchferry


def test_ones_that_a_file_keeps_once_for_a_weight_and_a_constant_are_not_redrawn(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.GroupNorm(4, 4)).eval()
    assert torchferry.export(model, (torch.randn(2, 2, 20),), tmp_path / "m.onnx").ok
