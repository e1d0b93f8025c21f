"""Files made to do harm, and files broken at random: always an answer, never a crash of ours, nothing written elsewhere."""

from __future__ import annotations

import gzip
import importlib.util
import tracemalloc
from pathlib import Path

import onnx
import pytest
from broken_files import linear, model, node, value

import torchferry
from torchferry.check import foreign, unpack
from torchferry.ort import Worker
from torchferry.records import Budget

SPEC = importlib.util.spec_from_file_location("fuzz", Path(__file__).parent.parent.parent / "benchmarks" / "fuzz.py")
assert SPEC is not None
assert SPEC.loader is not None
fuzzing = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzzing)


def test_files_broken_at_random_all_end_in_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "Worker", Worker)  # puts back what the script replaces
    worker = fuzzing.Shared(time_limit=5.0)
    try:
        tally, wrong = fuzzing.fuzz(250, 7, worker, tmp_path)
    finally:
        Worker.__exit__(worker, None, None, None)
    assert not wrong, [(s.fault, s.findings) for _, case in wrong for s in case.steps]
    assert tally["diagnosed"] > 200


def test_a_tensor_of_impossible_size_is_a_diagnosis(tmp_path: Path) -> None:
    made = linear()
    made.graph.initializer[0].dims[:] = [2**40, 2**40]
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    result = torchferry.check(tmp_path / "model.onnx")
    assert [d.code for d in result.diagnoses] == ["CHK027"]


def test_a_file_that_never_ends_is_a_diagnosis_within_its_time(tmp_path: Path) -> None:
    body = onnx.helper.make_graph(
        [node("Identity", ["k"], ["k2"]), node("Sin", ["a"], ["a2"])],
        "b",
        [value("i", 7, []), value("k", 9, []), value("a", 1, [3])],
        [value("k2", 9, []), value("a2", 1, [3])],
    )
    made = model(
        [node("Loop", ["n", "c", "x"], ["y"], body=body)], [value("x", 1, [3])], [value("y", 1, [3])], [("n", 2**62), ("c", True)]
    )
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    result = torchferry.check(tmp_path / "model.onnx", budget=Budget(time_limit=3))
    assert [d.code for d in result.diagnoses] == ["CHK030"]


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MOST", 1 << 16)
    (tmp_path / "model.onnx").write_bytes(gzip.compress(bytes(1 << 20)))
    result = torchferry.check(tmp_path / "model.onnx")
    assert not result.ok


def test_a_large_model_is_looked_at_without_reading_its_weights(tmp_path: Path) -> None:
    made = linear()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in (("location", "w.bin"), ("length", str(2 << 30))):
        tensor.external_data.add(key=key, value=text)
    tensor.dims[:] = [4, 1 << 27]
    with (tmp_path / "w.bin").open("wb") as data:
        data.truncate(2 << 30)  # a hole: no bytes are on the disk
    made.ir_version = 99  # so that the runtime stops before the weights
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    tracemalloc.start()
    result = torchferry.check(tmp_path / "model.onnx", repair="off")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [d.code for d in result.diagnoses] == ["CHK007"]
    assert peak < 100 << 20
