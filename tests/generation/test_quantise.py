"""Weights in fewer bits: smaller, near the exact model, and honest about how near."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from torchferry.certificate import KEY
from torchferry.errors import UsageError
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.quantise import cost, quantise
from torchferry.tasks import directory, export_directory

TEXTS = [torch.randint(0, 300, (1, 24), generator=torch.Generator().manual_seed(i)) for i in range(4)]


def quantised(exported: Path, place: Path, precision: str) -> Path:
    shutil.copytree(exported, place)
    (place / "model.onnx").unlink()
    quantise(exported / "model.onnx", place / "model.onnx", precision)
    return place


def matrices(path: Path) -> list[str]:
    return [n.op_type for n in onnx.load(path, load_external_data=False).graph.node if n.op_type in ("MatMulNBits", "Gemm")]


@pytest.mark.parametrize(("precision", "nearest"), [("int8", 0.05), ("int4", 0.6)])
def test_every_constant_matrix_is_quantised_and_the_logits_stay_near(
    exported: Path, model: Any, tmp_path: Path, precision: str, nearest: float
) -> None:
    place = quantised(exported, tmp_path / "out", precision)
    assert set(matrices(place / "model.onnx")) == {"MatMulNBits"}
    assert len(matrices(place / "model.onnx")) == 9  # four for each of two layers, and the head
    node = next(n for n in onnx.load(place / "model.onnx").graph.node if n.op_type == "MatMulNBits")
    assert next(a.i for a in node.attribute if a.name == "bits") == int(precision[-1])
    measured = cost(model, CausalLM.from_pretrained(place), TEXTS, precision)
    assert 0 < measured.mean_difference < nearest
    assert measured.positions == 96


def test_four_bits_cost_more_than_eight(exported: Path, model: Any, tmp_path: Path) -> None:
    eight, four = (
        cost(model, CausalLM.from_pretrained(quantised(exported, tmp_path / p, p)), TEXTS, p) for p in ("int8", "int4")
    )
    assert four.mean_difference > 2 * eight.mean_difference
    assert four.same_token <= eight.same_token


def test_the_exact_model_costs_nothing(exported: Path, model: Any) -> None:
    measured = cost(model, CausalLM.from_pretrained(exported), TEXTS, "float32")
    assert measured.same_token == 1.0
    assert measured.worst_difference < 1e-4
    assert "100.0% of 96 positions" in str(measured)


def test_the_certificate_of_the_exact_file_is_not_carried_over(exported: Path, tmp_path: Path) -> None:
    keys = {p.key: p.value for p in onnx.load(quantised(exported, tmp_path / "out", "int8") / "model.onnx").metadata_props}
    assert KEY in {p.key for p in onnx.load(exported / "model.onnx").metadata_props}
    assert KEY not in keys
    assert keys["pkg.torchferry.quantised"] == "int8"


def test_the_export_says_what_it_cost(
    result: Any, exported: Path, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def graphs(prepared: Any, folder: Path, check: bool, options: Any) -> list[Any]:
        shutil.copy(exported / "model.onnx", folder / "model.onnx")
        return [replace(result, path=folder / "model.onnx")]

    monkeypatch.setattr(directory, "_graphs", graphs)
    made = export_directory(model, tmp_path / "out", precision="int8")
    assert "MatMulNBits" in matrices(tmp_path / "out" / "model.onnx")
    record = json.loads((tmp_path / "out" / "torchferry.json").read_text())
    assert record["quantised"]["precision"] == "int8"
    assert 0.5 < record["quantised"]["same_token"] <= 1
    assert any("int8: the likeliest next token" in note for note in made.history.best.step("verify").notes)
    assert CausalLM.from_pretrained(tmp_path / "out").generate(torch.tensor([[5, 6]]), max_new_tokens=4).shape[1] >= 3


def test_an_unknown_precision_is_refused_with_the_nearest(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="int8 or int4, not 'int16'"):
        quantise(exported / "model.onnx", tmp_path / "model.onnx", "int16")
