"""Weights in fewer bits: smaller, near the exact model, and honest about how near."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch

from torchferry.check.reading.fingerprint import CERTIFICATE_KEY
from torchferry.errors import UsageError
from torchferry.foreign import onnxruntime as ort
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.quantise import cost, quantise
from torchferry.saturation.asked import features
from torchferry.tasks import export_directory, fewer_bits, prepare

TEXTS = [torch.randint(0, 300, (1, 24), generator=torch.Generator().manual_seed(i)) for i in range(4)]


def quantised(exported: Path, place: Path, precision: str, block: int | None = None) -> Path:
    shutil.copytree(exported, place)
    (place / "model.onnx").unlink()
    quantise(exported / "model.onnx", place / "model.onnx", precision, block=block)
    return place


def products(path: Path) -> list[str]:
    nodes = onnx.load(path, load_external_data=False).graph.node
    return [n.op_type for n in nodes if n.op_type in ("MatMulNBits", "MatMulInteger", "Gemm")]


def attribute(path: Path, name: str) -> set[int]:
    nodes = onnx.load(path, load_external_data=False).graph.node
    return {a.i for n in nodes if n.op_type == "MatMulNBits" for a in n.attribute if a.name == name}


@pytest.mark.parametrize(("precision", "block", "nearest"), [("int8", 128, 0.03), ("int8", 16, 0.025), ("int4", None, 0.6)])
def test_every_constant_matrix_is_quantised_and_the_logits_stay_near(
    exported: Path, model: Any, tmp_path: Path, precision: str, block: int | None, nearest: float
) -> None:
    place = quantised(exported, tmp_path / "out", precision, block)
    assert products(place / "model.onnx") == ["MatMulNBits"] * 9  # four for each of two layers, and the head
    assert attribute(place / "model.onnx", "bits") == {int(precision[-1])}
    measured = cost(model, CausalLM.from_pretrained(place), TEXTS, precision)
    assert 0 < measured.mean_difference < nearest
    assert measured.positions == 96


def test_int8_as_it_is_exported_keeps_the_likeliest_token_on_every_processor(int8: Path, model: Any) -> None:
    for texts in (TEXTS, [torch.randint(0, 300, (1, 32), generator=torch.Generator().manual_seed(9 + i)) for i in range(32)]):
        assert cost(model, CausalLM.from_pretrained(int8), texts, "int8").same_token >= 0.95


def test_the_file_says_on_which_instruction_sets_it_was_measured(int8: Path) -> None:
    held = {p.key: p.value for p in onnx.load(int8 / "model.onnx", load_external_data=False).metadata_props}
    shown = json.loads(held["pkg.torchferry.quantised.shown"])
    assert shown["instruction_sets"] == list(features())
    assert shown["same_token"] >= 0.95
    assert shown["positions"] == 512


@pytest.fixture(scope="module")
def int8(exported: Path, model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported directory with its weights in int8, in the form that was measured to be good enough."""
    place = tmp_path_factory.mktemp("int8") / "out"
    shutil.copytree(exported, place)
    fewer_bits.put_in_fewer_bits(prepare(model), place, "int8")
    return place


@pytest.mark.parametrize("width", [32, 48])  # of which the second leaves the last block half empty
def test_a_tied_embedding_in_int8_is_kept_once(tmp_path: Path, width: int) -> None:
    table = torch.randn(300, width, generator=torch.Generator().manual_seed(0)).numpy()
    ids = np.array([[3, 4, 5], [299, 0, 7]])
    ir.save(_tied(table), tmp_path / "exact.onnx")
    quantise(tmp_path / "exact.onnx", tmp_path / "int8.onnx", "int8", block=32)
    made = onnx.load(tmp_path / "int8.onnx")
    largest = max(
        int(np.prod(t.dims)) * onnx.helper.tensor_dtype_to_np_dtype(t.data_type).itemsize for t in made.graph.initializer
    )
    assert largest == 300 * 32 * -(-width // 32), "a byte for each weight, once"
    exact, near = (ort.session(tmp_path / f"{name}.onnx").run(None, {"ids": ids})[0] for name in ("exact", "int8"))
    np.testing.assert_allclose(near, exact, atol=0.02 * np.abs(exact).max())


def _tied(table: np.ndarray) -> ir.Model:
    nodes = [
        onnx.helper.make_node("Gather", ["table", "ids"], ["hidden"]),
        onnx.helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        onnx.helper.make_node("MatMul", ["hidden", "turned"], ["logits"]),
    ]
    taken = onnx.helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["batch", "length"])
    given = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", "length", len(table)])
    graph = onnx.helper.make_graph(nodes, "tied", [taken], [given], [onnx.numpy_helper.from_array(table, "table")])
    return ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9))


def test_the_fastest_form_that_keeps_enough_is_taken(
    exported: Path, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fewer_bits, "ENOUGH", 0.5)
    shutil.copytree(exported, tmp_path / "out")
    measured = fewer_bits.put_in_fewer_bits(prepare(model), tmp_path / "out", "int8")
    assert attribute(tmp_path / "out" / "model.onnx", "block_size") == {measured.block} == {128}
    assert "a scale for each 128 weights)" in str(measured)


def test_what_harms_most_is_left_exact_where_no_form_keeps_enough(
    exported: Path, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fewer_bits, "ENOUGH", 1.01)
    shutil.copytree(exported, tmp_path / "out")
    measured = fewer_bits.put_in_fewer_bits(prepare(model), tmp_path / "out", "int8")
    assert attribute(tmp_path / "out" / "model.onnx", "block_size") == {measured.block} == {16}
    assert 1 <= len(measured.spared) <= 3
    assert products(tmp_path / "out" / "model.onnx") == ["MatMulNBits"] * (9 - len(measured.spared))
    plain = cost(model, CausalLM.from_pretrained(quantised(exported, tmp_path / "plain", "int8", 16)), TEXTS, "int8")
    kept = cost(model, CausalLM.from_pretrained(tmp_path / "out"), TEXTS, "int8")
    assert kept.mean_difference < 0.75 * plain.mean_difference
    assert "left exact" in str(measured)


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
    assert CERTIFICATE_KEY in {p.key for p in onnx.load(exported / "model.onnx").metadata_props}
    assert CERTIFICATE_KEY not in keys
    assert keys["pkg.torchferry.quantised"] == "int8"


@pytest.mark.usefixtures("exported_before")
def test_the_export_says_what_it_cost(model: Any, tmp_path: Path) -> None:
    made = export_directory(model, tmp_path / "out", precision="int8")
    assert set(products(tmp_path / "out" / "model.onnx")) == {"MatMulNBits"}
    record = json.loads((tmp_path / "out" / "torchferry.json").read_text())
    assert record["quantised"]["precision"] == "int8"
    assert 0.95 <= record["quantised"]["same_token"] <= 1
    assert any(
        f"int8 (a scale for each {record['quantised']['block']} weights" in note and ": the likeliest next token" in note
        for note in made.history.best.step("generate").notes
    )
    first = str(made).splitlines()[0]
    assert first.startswith("near, not exact: ")
    assert "has int8 weights; with its exact ones it was verified in" in first
    assert "--certificate" not in str(made), "the file carries none"
    assert CausalLM.from_pretrained(tmp_path / "out").generate(torch.tensor([[5, 6]]), max_new_tokens=4).shape[1] >= 3


def test_an_unknown_precision_is_refused_with_the_nearest(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="int8 or int4, not 'int16'"):
        quantise(exported / "model.onnx", tmp_path / "model.onnx", "int16")
