"""optimum's ORTModelForCausalLM loads our directory, and writes the same tokens.

It needs transformers < 4.58, so it lives in a venv of its own, made on first use (minutes, and a download of torch). The
environment variable TORCHFERRY_OPTIMUM_PYTHON may name the Python of one that is there already.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

import families
import pytest
import torch

from torchferry.tasks import export_directory

PEERS = (
    "transformers==4.57.*",
    "optimum-onnx",
    f"onnxruntime=={version('onnxruntime')}",
    f"torch=={version('torch').split('+')[0]}",
)
SCRIPT = """
import json, sys, torch
from optimum.onnxruntime import ORTModelForCausalLM
asked = json.load(sys.stdin)
model = ORTModelForCausalLM.from_pretrained(asked.pop("directory"), use_cache=True)
inputs = {name: torch.tensor(asked.pop(name)) for name in ("input_ids", "attention_mask")}
print(json.dumps(model.generate(**inputs, **asked).tolist()))
"""
INPUTS = {"input_ids": [[0, 0, 5, 6], [3, 4, 5, 6]], "attention_mask": [[0, 0, 1, 1], [1, 1, 1, 1]]}
OPTIONS = {"max_new_tokens": 12, "do_sample": False}


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has optimum-onnx."""
    if named := os.environ.get("TORCHFERRY_OPTIMUM_PYTHON"):
        return named
    place = tmp_path_factory.mktemp("optimum")
    venv.create(place, with_pip=True)
    made = str(place / "bin" / "python")
    subprocess.run([made, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return made


def by_optimum(python: str, directory: Path, **options: Any) -> list[list[int]]:
    asked = json.dumps({"directory": str(directory), **INPUTS, **options})
    done = subprocess.run([python, "-c", SCRIPT], input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.compat
@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("position_ids", [False, True], ids=["positions-inside", "positions-fed"])
def test_optimum_writes_the_same_tokens(python: str, family: str, position_ids: bool, tmp_path: Path) -> None:
    model = families.decoder(family)
    export_directory(model, tmp_path / "out", position_ids=position_ids)
    inputs = {name: torch.tensor(values) for name, values in INPUTS.items()}
    for more in ({}, {"num_beams": 3}):
        wanted = model.generate(**inputs, **OPTIONS, **more).tolist()
        assert by_optimum(python, tmp_path / "out", **OPTIONS, **more) == wanted
