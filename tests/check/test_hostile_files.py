"""Files made to do harm, and files broken at random: always an answer, never a crash of ours, nothing written elsewhere."""

from __future__ import annotations

import gzip
import importlib
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from broken_files import linear, model, node, value

import torchferry
from torchferry.check.reading import incoming, unpack
from torchferry.records import Budget
from torchferry.worker import Worker

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def test_files_broken_at_random_all_end_in_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fuzz, fuzz_bases = importlib.import_module("fuzz"), importlib.import_module("fuzz_bases")
    monkeypatch.setattr(incoming, "Worker", Worker)  # puts back what the script replaces
    worker = fuzz.Shared(time_limit=5.0)
    try:
        tally, wrong = fuzz.fuzz(250, 7, worker, tmp_path, fuzz_bases.by_hand())
    finally:
        Worker.__exit__(worker, None, None, None)
    assert not wrong, [detail for _, detail in wrong]
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


LARGE = """
import re, resource, sys, torchferry
result = torchferry.check(sys.argv[1], repair="off")
own = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # ru_maxrss would count the test's process in
worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print([d.code for d in result.diagnoses], own + worker >> 10, "torch" in sys.modules)
"""


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
    asked = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path / "model.onnx")], capture_output=True, text=True, check=True
    )
    codes, megabytes, torch_loaded = _told(asked.stdout)
    assert codes == "['CHK007']"
    assert megabytes < 300, "the check and the process that it asks, together"
    assert not torch_loaded


def _told(words: str) -> tuple[str, int, bool]:
    codes, used, loaded = words.strip().rsplit(" ", 2)
    return codes, int(used), loaded == "True"


def test_outputs_that_nobody_looks_at_stay_where_they_are(tmp_path: Path) -> None:
    wide = model([node("Expand", ["x", "s"], ["y"])], [value("x", 1, [1])], [value("y", 1, None)], [("s", [1 << 26])])
    (tmp_path / "model.onnx").write_bytes(wide.SerializeToString())
    tracemalloc.start()
    assert torchferry.check(tmp_path / "model.onnx").ok
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20


@pytest.mark.parametrize("location", ["a" * 5000, "/".join(["ab"] * 2000), "b" * 256, "x\0y"])
def test_a_place_for_weights_that_is_no_path_is_a_diagnosis(location: str, tmp_path: Path) -> None:
    made = linear()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    assert [d.code for d in torchferry.check(tmp_path / "model.onnx").diagnoses] in (["CHK004"], ["CHK005"])


MENDED = """
import numpy, re, sys, torchferry
result = torchferry.check(sys.argv[1], feeds={"ids": numpy.array([5, 6])}, output=sys.argv[2])
print(result.ok, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)
"""


@pytest.mark.slow
def test_a_model_with_more_than_two_gigabytes_beside_it_is_mended_with_its_weights_carried_along(tmp_path: Path) -> None:
    rows, columns = 1 << 17, 4400  # 2.3 GB
    made = model([node("Gather", ["w", "ids"], ["y"])], [value("ids", 7, ["N"])], [value("y", 1, ["N", columns])])
    tensor = made.graph.initializer.add(name="w", data_type=onnx.TensorProto.FLOAT, dims=[rows, columns])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    with (tmp_path / "w.bin").open("wb") as data:
        data.seek(5 * columns * 4)
        data.write(np.full(columns, 7, np.float32).tobytes())
        data.truncate(rows * columns * 4)
    made.ir_version = 99
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", MENDED, str(tmp_path / "model.onnx"), str(tmp_path / "out" / "mended.onnx")]
    ok, megabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert ok == "True"
    assert int(megabytes) < 300
    graph, weights = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert graph == "mended.onnx"
    assert re.fullmatch(r"mended\.onnx\.[0-9a-f]{12}\.data", weights)
    got = torchferry.InferenceSession(tmp_path / "out" / "mended.onnx").run(None, {"ids": np.array([5, 6])})[0]
    assert got[:, 0].tolist() == [7, 0]
