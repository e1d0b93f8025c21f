"""Weights in fewer bits: smaller, near the exact model, and honest about how near."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch

from torchferry import ort
from torchferry.certificate import KEY
from torchferry.errors import UsageError
from torchferry.runtime.columns import quantise_columns
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.quantise import BLOCKS, cost, only_matmuls, quantise
from torchferry.tasks import directory, export_directory, fewer_bits, prepare

TEXTS = [torch.randint(0, 300, (1, 24), generator=torch.Generator().manual_seed(i)) for i in range(4)]


def quantised(exported: Path, place: Path, precision: str, form: str | None = None) -> Path:
    shutil.copytree(exported, place)
    (place / "model.onnx").unlink()
    quantise(exported / "model.onnx", place / "model.onnx", precision, form=form)
    return place


def matrices(path: Path) -> list[str]:
    nodes = onnx.load(path, load_external_data=False).graph.node
    return [n.op_type for n in nodes if n.op_type in ("MatMulNBits", "MatMulInteger", "Gemm")]


@pytest.mark.parametrize(
    ("precision", "form", "kernel", "nearest"),
    [("int8", None, "MatMulInteger", 0.05), ("int8", BLOCKS, "MatMulNBits", 0.05), ("int4", None, "MatMulNBits", 0.6)],
)
def test_every_constant_matrix_is_quantised_and_the_logits_stay_near(
    exported: Path, model: Any, tmp_path: Path, precision: str, form: str | None, kernel: str, nearest: float
) -> None:
    place = quantised(exported, tmp_path / "out", precision, form)
    assert matrices(place / "model.onnx") == [kernel] * 9  # four for each of two layers, and the head
    measured = cost(model, CausalLM.from_pretrained(place), TEXTS, precision)
    assert 0 < measured.mean_difference < nearest
    assert measured.positions == 96


def test_bits_are_those_asked_for(exported: Path, tmp_path: Path) -> None:
    for precision, form in (("int8", BLOCKS), ("int4", None)):
        graph = onnx.load(quantised(exported, tmp_path / precision, precision, form) / "model.onnx").graph
        node = next(n for n in graph.node if n.op_type == "MatMulNBits")
        assert next(a.i for a in node.attribute if a.name == "bits") == int(precision[-1])


def test_columns_are_standard_onnx(exported: Path, tmp_path: Path) -> None:
    made = onnx.load(quantised(exported, tmp_path / "out", "int8") / "model.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert {n.domain for n in made.graph.node} == {""}


def test_a_tied_embedding_in_int8_is_kept_once(tmp_path: Path) -> None:
    tables = torch.randn(300, 8, generator=torch.Generator().manual_seed(0)).numpy()
    model = _tied(tables)
    ids = np.array([[3, 4, 5], [299, 0, 7]])
    exact = run(model, ids)
    only_matmuls(model)
    quantise_columns(model)
    assert max(v.const_value.nbytes for v in model.graph.initializers.values()) == tables.size, "a byte for each weight, once"
    np.testing.assert_allclose(run(model, ids), exact, atol=0.05 * np.abs(exact).max())


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


def run(model: ir.Model, ids: np.ndarray) -> np.ndarray:
    return ort.session(ir.to_proto(model).SerializeToString()).run(None, {"ids": ids})[0]


def test_int8_that_meets_outliers_goes_by_blocks(
    result: Any, exported: Path, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fewer_bits, "FAR", 0.0)  # as if the columns had moved the logits too far
    shutil.copytree(exported, tmp_path / "out")
    measured = fewer_bits.put_in_fewer_bits(prepare(model), tmp_path / "out", "int8")
    kept = set(matrices(tmp_path / "out" / "model.onnx"))
    assert kept == ({"MatMulNBits"} if measured.form == BLOCKS else {"MatMulInteger"})
    assert measured.form in str(measured)


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
    assert "MatMulInteger" in matrices(tmp_path / "out" / "model.onnx")
    record = json.loads((tmp_path / "out" / "torchferry.json").read_text())
    assert record["quantised"]["precision"] == "int8"
    assert 0.5 < record["quantised"]["same_token"] <= 1
    assert any(
        "int8 (a scale for each column): the likeliest next token" in note for note in made.history.best.step("verify").notes
    )
    first = str(made).splitlines()[0]
    assert first.startswith("near, not exact: ")
    assert "has int8 weights; with its exact ones it was verified in" in first
    assert "--certificate" not in str(made), "the file carries none"
    assert CausalLM.from_pretrained(tmp_path / "out").generate(torch.tensor([[5, 6]]), max_new_tokens=4).shape[1] >= 3


def test_an_unknown_precision_is_refused_with_the_nearest(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="int8 or int4, not 'int16'"):
        quantise(exported / "model.onnx", tmp_path / "model.onnx", "int16")
