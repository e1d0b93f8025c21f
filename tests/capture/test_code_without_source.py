"""Models in code that lies in no file: the ordinary diagnosis, at a line whose text cannot be shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchferry

SOURCE = """
import torch

class Branch(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1

class Chosen(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x - 1

class Loop(torch.nn.Module):
    def forward(self, x):
        while x.sum() > 1:
            x = x / 2
        return x

class Number(torch.nn.Module):
    def forward(self, x):
        return x * len("x" * int(x.argmax()))

class Size(torch.nn.Module):
    def forward(self, x):
        return x * sum(range(x.shape[0]))

class Numpy(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy() + 1)
"""
EXPECTED = {
    "Branch": ("CAP001", 6),
    "Chosen": ("CAP001", 12),
    "Loop": ("CAP003", 16),
    "Number": ("CAP006", 22),
    "Size": ("CAP017", 26),
    "Numpy": ("CAP013", 30),
}


@pytest.mark.parametrize("file", ["<string>", "<my model>"])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_model_run_from_a_string_gets_the_ordinary_diagnosis(name: str, file: str, tmp_path: Path) -> None:
    space: dict[str, type[torch.nn.Module]] = {}
    exec(compile(SOURCE, file, "exec"), space)
    asked = {"dynamic_axes": {"x": {0: "n"}}} if name == "Size" else {}
    result = torchferry.export(space[name](), (torch.rand(4),), tmp_path / "m.onnx", check=False, **asked)  # type: ignore[arg-type]
    code, line = EXPECTED[name]
    assert [(d.code, d.location.file, d.location.line) for d in result.diagnoses] == [(code, file, line)]
    assert f"`line {line}`" in str(result)


def test_a_branch_in_python_c_gets_the_ordinary_diagnosis(tmp_path: Path) -> None:
    call = "\nimport torchferry\nprint(torchferry.export(Branch(), (torch.rand(4),), 'm.onnx', check=False))"
    said = subprocess.run([sys.executable, "-c", SOURCE + call], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "error[CAP001]" in said
    assert "--> <string>:6" in said
    assert "please report" not in said
