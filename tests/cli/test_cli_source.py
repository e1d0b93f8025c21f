"""Repairs of the user's source, and its random draws, from the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest

MODEL = """import torch
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y


class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def gate(): return Gate().eval(), (torch.ones(2, 3),)
def drawing(): return Drawing().eval(), (torch.ones(2, 3),)
"""


@pytest.fixture
def source(here: Path) -> Path:
    file = here / "gates.py"
    file.write_text(MODEL)
    return file


def test_the_patch_that_is_written_applies_and_mends_the_source(source: Path, inside: Callable[..., int]) -> None:
    assert inside("export", "gates.py:gate", "-o", "gate.onnx", "--write-patch", "gate.patch", "-q") == 0
    assert source.read_text() == MODEL  # nothing on disk changes without being asked
    patch = source.parent / "gate.patch"
    subprocess.run(["git", "apply", patch.name], cwd=source.parent, check=True, capture_output=True)
    assert "torch.cond(" in source.read_text()
    assert inside("export", "gates.py:gate", "-o", "again.onnx", "--repair", "off", "-q") == 0


def test_a_draw_is_made_an_input(source: Path, inside: Callable[..., int]) -> None:
    assert inside("export", "gates.py:drawing", "-o", "drawing.onnx", "--noise", "input", "-q") == 0
    session = onnxruntime.InferenceSession(source.parent / "drawing.onnx")
    assert [i.name for i in session.get_inputs()] == ["x", "normal_noise_0"]
