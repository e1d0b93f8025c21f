"""A failing trial can be taken away: three files, and a script that shows the difference without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from crossing import crossed, stock, verdict
from torch import nn

import torchferry
from torchferry.result import Result


def shown(result: Result, folder: Path) -> tuple[str, str, onnx.ModelProto]:
    """Return what the script prints, what it says of itself, and the model beside it."""
    script = result.reproducer(folder)
    assert script is not None
    assert sorted(p.name for p in script.parent.iterdir()) == ["model.onnx", "reproduce.py", "trial.npz"]
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    return run.stdout, script.read_text(encoding="utf-8").split('"""')[1], onnx.load(str(folder / "model.onnx"))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


def test_only_the_wrong_node_of_a_deep_net_is_written(tmp_path: Path) -> None:
    model, example = Deep().eval(), (torch.randn(2, 8),)
    path = stock(model, example, tmp_path / "deep.onnx")
    file = onnx.load(str(path))
    wounded = [n for n in file.graph.node if n.op_type == "Tanh"][3]
    wounded.op_type = "Erf"
    onnx.save(file, str(path))
    told, words, part = shown(verdict(model, example, path), tmp_path / "out")
    assert "DIFFERS" in told
    assert [n.op_type for n in part.graph.node] == ["Erf"]
    assert "1 node of the file" in words
    assert f"{__file__}:" in words  # the line of torch's own value


class Bucket(nn.Module):
    def forward(self, n):
        return (n * 2) // 3 + 1


def test_what_was_a_value_of_the_op_at_the_example_is_the_output_of_the_part(tmp_path: Path) -> None:
    told, words, part = shown(crossed(Bucket(), (torch.tensor([1, 4, 9, 8]),), tmp_path), tmp_path / "out")
    assert "DIFFERS" in told
    assert "Add" not in {n.op_type for n in part.graph.node}
    assert "of the file, fed as in this trial" in words


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(1, 1, 1)

    def forward(self, x):
        return torch.sigmoid(torch.max_pool2d(nn.functional.pad(self.mix(x) - 5, (1, 1, 1, 1)), 3)).sum(-1)


def test_a_wrong_rewrite_of_onnxruntime_is_shown_by_the_nodes_around_it(tmp_path: Path) -> None:
    model, example = Pool().eval(), (torch.randn(1, 1, 7, 7),)
    torch.onnx.export(model, example, str(tmp_path / "m.onnx"), input_names=["x"], verbose=False)
    told, words, part = shown(verdict(model, example, tmp_path / "m.onnx"), tmp_path / "out")
    assert "DIFFERS" in told
    assert {"Pad", "MaxPool"} <= {n.op_type for n in part.graph.node}
    assert "Sigmoid" not in {n.op_type for n in part.graph.node}
    assert "onnxruntime's optimiser" in words


class OnLength(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1) if x.shape[1] > 10 else x.amax(1)


def test_an_export_that_was_refused_is_reproduced_by_the_whole_file_which_says_so(tmp_path: Path) -> None:
    result = torchferry.export(OnLength(), (torch.randn(2, 5, 4),), tmp_path / "m.onnx", repair="off", check=False)
    assert not result.ok
    told, words, _ = shown(result, tmp_path / "shown")
    assert "DIFFERS" in told
    assert "the whole file" in words


def test_the_command_writes_it_too_and_the_trial_is_in_an_npz(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("import torch\ndef relu():\n    return torch.nn.ReLU(), (torch.randn(2, 4),)\n")
    stock(nn.Softplus(), (torch.randn(2, 4),), tmp_path / "m.onnx")
    words = ["verify", "models.py:relu", "m.onnx", "--reproducer", "shown", "--trials", "4"]
    ended = subprocess.run(
        [sys.executable, "-m", "torchferry", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    with np.load(tmp_path / "shown" / "trial.npz") as kept:
        assert any(a.shape == (2, 4) for a in kept.values())
    assert (tmp_path / "shown" / "reproduce.py").is_file()


def test_there_is_nothing_to_write_when_all_is_well(tmp_path: Path) -> None:
    result = crossed(nn.ReLU(), (torch.randn(2, 4),), tmp_path)
    assert result.reproducer(tmp_path / "out") is None
    assert not (tmp_path / "out").exists()
