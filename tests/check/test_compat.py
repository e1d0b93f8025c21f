"""Files made for old releases of onnxruntime really load and run there, and give what the model gives.

Needs the wheels of those releases, each in a virtual environment of its own, made on first use in `build/`.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import torchferry

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1200)]
BUILD = Path(__file__).parent.parent.parent / "build" / "compat"
RUN = """
import sys, numpy, onnxruntime
feeds = dict(numpy.load(sys.argv[2]))
outputs = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, feeds)
numpy.savez(sys.argv[3], *outputs)
"""


@pytest.fixture(scope="session", params=["1.17.3", "1.20.1"])
def release(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A release and the Python that has it."""
    place = BUILD / request.param
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    wanted = ["-m", "pip", "install", "--quiet", f"onnxruntime=={request.param}", "numpy<2"]
    subprocess.run([str(python), *wanted], check=True)
    return request.param, python


def mlp() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    return (
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2)).eval(),
        (torch.randn(2, 4),),
        {},
    )


def cnn() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    layers = (
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(36, 5),
    )
    return torch.nn.Sequential(*layers).eval(), (torch.randn(2, 3, 8, 8),), {}


def bert() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    ids = torch.randint(0, 50, (2, 6))
    return BertModel(config).eval(), (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def gpt2() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2, use_cache=False)
    return GPT2LMHeadModel(config).eval(), (), {"input_ids": torch.randint(0, 50, (2, 6))}


@pytest.mark.parametrize("make", [mlp, cnn, bert, gpt2])
def test_a_file_made_for_an_old_release_runs_there_and_matches(make: Any, release: tuple[str, Path], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, args, kwargs = make()
    version, python = release
    result = torchferry.export(model, args, tmp_path / "model.onnx", kwargs=kwargs, target=f"onnxruntime=={version}")
    feeds = result.feeds(args, kwargs)
    np.savez(tmp_path / "feeds.npz", **feeds)
    subprocess.run(
        [str(python), "-c", RUN, str(result.path), str(tmp_path / "feeds.npz"), str(tmp_path / "out.npz")],
        check=True,
        cwd=tmp_path,
    )
    old = list(np.load(tmp_path / "out.npz").values())
    new = torchferry.InferenceSession(str(result.path)).run(None, feeds)
    with torch.no_grad():
        eager = model(*args, **kwargs)
    first = eager if isinstance(eager, torch.Tensor) else next(iter(eager.values()))
    np.testing.assert_allclose(old[0], first.numpy(), rtol=1e-3, atol=1e-4)
    for a, b in zip(old, new, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_the_python_of_the_tests_is_not_the_old_one(release: tuple[str, Path]) -> None:
    version, python = release
    asked = subprocess.run(
        [str(python), "-c", "import onnxruntime; print(onnxruntime.__version__)"], capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == version
    assert Path(sys.executable) != python
