"""Healthy files cost little: nothing heavy is loaded for them, and both processes load at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from broken_files import linear
from onnx import parser

from torchferry.check.reading.expressions import evaluate
from torchferry.records import Fault
from torchferry.worker import Worker

HEAVY = ("torch", "sympy", "onnxscript", "onnx_ir", "transformers", "onnxruntime", "torchferry.repair")
PROBE = """
import sys, torchferry
result = torchferry.check(sys.argv[1])
assert result.ok and not result.diagnoses, result
rules = [m for m in sys.modules if m.startswith("torchferry.catalogue.check.")]
print(*[m for m in sys.argv[2:] if m in sys.modules], *rules)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(linear().SerializeToString())
    return path


def test_a_healthy_file_loads_neither_torch_nor_a_runtime_nor_any_rule(file: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", PROBE, str(file), *HEAVY], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


def test_a_model_whose_opening_was_begun_is_the_one_that_is_opened(file: Path) -> None:
    with Worker(60) as worker:
        worker.begin_open(file)
        key = worker.open(file)
        assert isinstance(key, str)
        assert [name for name, _, _ in worker.inputs(key)] == ["x"]


def test_what_was_begun_in_vain_does_not_get_in_the_way(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(b"no model")
    with Worker(60) as worker:
        worker.begin_open(file)
        worker.begin_open(other)
        key = worker.open(file)
        assert isinstance(key, str)
        worker.begin_open(other)
        assert isinstance(worker.open(other), Fault)
        assert [name for name, _, _ in worker.inputs(key)] == ["x"]


def test_a_run_that_was_begun_is_ended_or_given_up(file: Path) -> None:
    shape = onnx.load(str(file)).graph.input[0].type.tensor_type.shape.dim
    x = np.ones([d.dim_value or 2 for d in shape], np.float32)
    with Worker(60) as worker:
        key = worker.open(file)
        assert isinstance(key, str)
        assert worker.begin_run(key, {"x": x}) is None
        ended = worker.end_run()
        assert worker.begin_run(key, {"x": 2 * x}) is None  # given up by the next question
        asked = worker.run(key, {"x": x})
        assert not isinstance(ended, Fault)
        assert not isinstance(asked, Fault)
        assert all((a == b).all() for a, b in zip(ended, asked, strict=True))
        assert worker.begin_run(key, {"x": x.astype(np.float64)}) is None
        assert isinstance(worker.end_run(), Fault)


def test_a_run_that_nobody_wants_is_not_waited_for(tmp_path: Path) -> None:
    forever = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (int64[1] n) => (int64[1] last) {
        most = Constant <value_int = 9000000000000000000> ()
        go = Constant <value = bool {1}> ()
        last = Loop <body = b (int64 i, bool c, int64[1] v) => (bool d, int64[1] w) {
            d = Identity(c)
            w = Add(v, v)
        }> (most, go, n)
    }""")
    path = tmp_path / "forever.onnx"
    onnx.save(forever, path)
    with Worker(60) as worker:
        key = worker.open(path)
        assert isinstance(key, str)
        assert worker.begin_run(key, {"n": np.ones(1, np.int64)}) is None
        assert worker.inputs(key) == []  # its process was ended, and with it the session
        assert worker.version()
        assert isinstance(worker.open(path), str)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("past + sequence", 7), ("2*past", 6), ("floor(sequence/2) + 1", 3), ("sequence//3", 1), ("-past + sequence", 1),
        ("Max(past, sequence)", 4), ("sequence/2", 2), ("past/2", None), ("unknown + 1", None), ("(past", None),
        ("9**9**9", None), ("past.real", None), ("().__class__", None), ("print(1)", None), ("2 " + "* 2" * 90, None),
    ],
)  # fmt: skip
def test_sizes_written_as_expressions_are_worked_out_and_never_run(text: str, size: int | None) -> None:
    assert evaluate(text, {"past": 3, "sequence": 4}) == size
