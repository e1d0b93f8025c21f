"""A failing trial can be taken away: three files, and a script that shows the difference without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from crossing import crossed
from torch import nn

import torchferry
from torchferry.verify.reproduce import write


class Bucket(nn.Module):
    def forward(self, n):
        return n // 3


def test_the_script_shows_the_difference(tmp_path: Path) -> None:
    result = crossed(Bucket(), (torch.tensor([1, 4, 9, 8]),), tmp_path)
    script = write(result.history.best, tmp_path / "out")
    assert script is not None
    run = subprocess.run([sys.executable, script.name], cwd=script.parent, capture_output=True, text=True, check=True)
    assert "DIFFERS" in run.stdout


def test_there_is_nothing_to_write_when_all_is_well(tmp_path: Path) -> None:
    result = crossed(nn.ReLU(), (torch.randn(2, 4),), tmp_path)
    assert write(result.history.best, tmp_path / "out") is None
    assert not (tmp_path / "out").exists()


class OnLength(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1) if x.shape[1] > 10 else x.amax(1)


def test_an_export_that_was_refused_can_still_be_reproduced(tmp_path: Path) -> None:
    result = torchferry.export(OnLength(), (torch.randn(2, 5, 4),), tmp_path / "m.onnx", repair="off", check=False)
    assert not result.ok
    script = result.reproducer(tmp_path / "shown")
    assert script is not None
    assert sorted(p.name for p in script.parent.iterdir()) == ["model.onnx", "reproduce.py", "trial.npz"]
