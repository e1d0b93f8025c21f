"""Scripts written for torch.onnx.export run as they are once the one import is swapped: their own asserts hold."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
# larger models, or several of them
SLOW = {
    "encoder_with_three_inputs", "exported_program", "keyword_arguments", "nested_inputs", "recurrent_tagger",
    "residual_classifier", "super_resolution", "traced_model", "wrapped_model",
}  # fmt: skip
# how scripts get at torch.onnx, and what stands there instead; the last is for those that say `torch.onnx.export`
SWAPS = (
    (r"^import torch\.onnx as onnx$", "import torchferry.onnx as onnx"),
    (r"^from torch\.onnx import ", "from torchferry.onnx import "),
    (r"^from torch import nn, onnx$", "from torch import nn; from torchferry import onnx"),
    (r"^import torch\.onnx$", "import torchferry.onnx; torch.onnx = torchferry.onnx"),
)


def swapped(text: str) -> str:
    """Return a script that uses torchferry in the place of torch.onnx; nothing else in it changes."""
    made, count = text, 0
    for pattern, instead in SWAPS:
        made, found = re.subn(pattern, instead, made, flags=re.MULTILINE)
        count += found
    assert count == 1, "a script has one import of torch.onnx"
    return made


@pytest.fixture
def _torch_onnx_is_put_back() -> Iterator[None]:
    before = torch.onnx
    yield
    torch.onnx = before


@pytest.mark.usefixtures("_torch_onnx_is_put_back")
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in SCRIPTS]
)
def test_a_script_for_torch_onnx_export_runs_with_its_import_swapped(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"script_{path.stem}")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(swapped(path.read_text(encoding="utf-8")), str(path), "exec"), vars(module))


def test_there_are_twenty_scripts_and_each_asserts_something() -> None:
    assert len(SCRIPTS) >= 20
    assert {path.stem for path in SCRIPTS} >= SLOW
    for path in SCRIPTS:
        assert re.search(r"^\s*(assert |np\.testing|torch\.testing)", path.read_text(encoding="utf-8"), re.MULTILINE), path.name
