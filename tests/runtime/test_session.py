"""InferenceSession: everything that onnxruntime's does, with feeds made to fit and errors explained."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import torchferry
from torchferry.check.reading.fingerprint import SESSION_KEY
from torchferry.errors import FeedError, FileRefused
from torchferry.foreign import onnxruntime as ort
from torchferry.runtime.session import CoercionWarning, InferenceSession, SessionError

RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { [act] y = Relu (x) }'
ONES = np.ones((2, 3), np.float32)


def saved(text: str, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


@pytest.fixture
def session(tmp_path: Path) -> InferenceSession:
    return InferenceSession(saved(RELU, tmp_path))


def test_it_has_every_public_method_of_the_original(session: InferenceSession) -> None:
    for name in (n for n in dir(onnxruntime.InferenceSession) if not n.startswith("_")):
        assert callable(getattr(session, name)), name
    assert session.get_inputs()[0].name == "x"
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_modelmeta().graph_name == "g"


def test_a_good_feed_gives_what_onnxruntime_gives_without_a_word(session: InferenceSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(session.run(["y"], {"x": ONES})[0], ONES)
        assert np.array_equal(session.run([], {"x": ONES[::-1]})[0], ONES)


def test_bound_and_foreign_values_go_through(session: InferenceSession) -> None:
    given = onnxruntime.OrtValue.ortvalue_from_numpy(ONES)
    assert np.array_equal(session.run_with_ort_values(None, {"x": given})[0].numpy(), ONES)
    binding = session.io_binding()
    binding.bind_cpu_input("x", ONES)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], ONES)


def test_a_coercion_is_announced_once_for_each_input(session: InferenceSession) -> None:
    with pytest.warns(CoercionWarning, match=r"RUN004.*`x`.*float64"):
        first = session.run(None, {"x": ONES.astype(np.float64)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = session.run(None, {"x": ONES.astype(np.float64)})
    assert first[0].dtype == second[0].dtype == np.float32


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "value", [torch.ones(2, 3), ONES.tolist(), ONES.astype(">f4"), ONES.astype(object), ONES.astype(np.int64)]
)
def test_what_means_the_same_gives_the_same(session: InferenceSession, value: object) -> None:
    assert np.array_equal(session.run(None, {"x": value})[0], ONES)


def test_what_would_lose_something_is_refused_naming_the_input(session: InferenceSession) -> None:
    with pytest.raises(FeedError, match=r"RUN005.*`x`.*imaginary"):
        session.run(None, {"x": ONES * 1j})
    with pytest.raises(FeedError, match=r"RUN003.*`x`"):
        session.run(None, {})


def test_strict_coerces_nothing_and_never_misreads_bytes(tmp_path: Path) -> None:
    strict = InferenceSession(saved(RELU, tmp_path), strict=True)
    with pytest.raises(SessionError, match="data type"):
        strict.run(None, {"x": ONES.astype(np.float64)})
    with pytest.raises(FeedError, match="byte order"):
        strict.run(None, {"x": ONES.astype(">f4")})


def test_a_run_error_is_explained_and_still_onnxruntimes_own(session: InferenceSession) -> None:
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument) as caught:
        session.run(None, {"x": np.ones((2, 4), np.float32)})
    assert isinstance(caught.value, SessionError)
    assert "RUN012" in str(caught.value)
    assert "onnxruntime said: " in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_creation_error_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=r"CHK007.*IR version"):
        InferenceSession(saved(RELU.replace("ir_version: 8", "ir_version: 99"), tmp_path))
    (tmp_path / "page.onnx").write_text("<!DOCTYPE html><html></html>")
    with pytest.raises(SessionError, match=r"CHK001.*web page"):
        InferenceSession(tmp_path / "page.onnx")


def test_onnxruntime_prints_nothing_of_a_file_that_does_not_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) <float[1] w = {1}> { y = Add (x, w) }'
    )
    tensor = model.graph.initializer[0]
    del tensor.float_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights/..")
    (tmp_path / "weights").write_bytes(bytes(4))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(SessionError):
        InferenceSession(path)
    assert capsys.readouterr().out == ""


def test_positions_beyond_a_table_are_an_error_here(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (int64 n) => (float[2] y)
        <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64 zero = {0}, int64 one = {1}, int64[1] first = {0}> {
        r = Range (zero, n, one)
        [look] e = Gather (w, r)
        y = ReduceSum <keepdims = 0> (e, first) }"""
    with pytest.raises(SessionError, match=r"out of data bounds") as caught:
        InferenceSession(saved(text, tmp_path)).run(None, {"n": np.array(5)})
    assert re.search(r"RUN015.*`w`, which has 3 rows", caught.value.explain())


@pytest.mark.filterwarnings("ignore")
def test_bfloat16_goes_in_and_comes_out(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (bfloat16[N] x) => (bfloat16[N] y) {
        h = Cast <to = 1> (x)
        y = Cast <to = 16> (h) }"""
    got = InferenceSession(saved(text, tmp_path)).run(None, {"x": np.array([1.5, -2], ml_dtypes.bfloat16)})[0]
    assert got.dtype == ml_dtypes.bfloat16
    assert got.tolist() == [1.5, -2]


def with_settings(settings: str, folder: Path) -> Path:
    path = saved(RELU, folder)
    model = onnx.load(str(path))
    model.metadata_props.add(key=SESSION_KEY, value=settings)
    path.write_bytes(model.SerializeToString())
    return path


def test_the_settings_that_torchferry_wrote_into_a_file_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    opened = ort.session_as_asked
    monkeypatch.setattr(ort, "session_as_asked", lambda *a, **more: asked.append(more) or opened(*a, **more))
    InferenceSession(with_settings('{"disabled_optimizers": ["ConvActivationFusion"]}', tmp_path))
    assert "ConvActivationFusion" in asked[-1]["disabled_optimizers"]


HOSTILE = {
    "a file to write": {"config": {"session.collect_node_memory_stats_to_file": "victim"}},
    "another file to write": {"config": {"session.optimized_model_external_initializers_file_name": "victim"}},
    "a library": {"libraries": ["./evil.so"]},
    "an option that does no harm": {"config": {"session.use_env_allocators": "1"}},
    "no list": {"disabled_optimizers": "ConvActivationFusion"},
    "no names": {"disabled_optimizers": ["../victim"]},
    "a number": {"disabled_optimizers": [1]},
    "far too many": {"disabled_optimizers": ["A"] * 100_000},
    "no object": [1],
    "nothing": None,
}


@pytest.mark.parametrize("what", [*HOSTILE, "no JSON", "nested without end", "the same key twice"])
def test_nothing_else_is_taken_from_a_files_metadata(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"no JSON": "{", "nested without end": "[" * 100_000}
    texts["the same key twice"] = '{"disabled_optimizers": [], "disabled_optimizers": ["A"]}'
    path = with_settings(texts.get(what) or json.dumps(HOSTILE[what]), tmp_path)
    (tmp_path / "victim").write_text("mine")
    for source in (path, path.read_bytes()):
        with pytest.raises(FileRefused, match=r"^CHK032: `pkg\.torchferry\.session` is refused: "):
            InferenceSession(source)
    assert [d.code for d in torchferry.check(path).diagnoses] == ["CHK032"]
    assert {p.name: p.stat().st_size for p in tmp_path.iterdir()} == {"model.onnx": path.stat().st_size, "victim": 4}


def test_a_model_is_taken_as_bytes_too(tmp_path: Path) -> None:
    assert np.array_equal(InferenceSession(saved(RELU, tmp_path).read_bytes()).run(None, {"x": ONES})[0], ONES)


def test_profiling_by_the_original_interface_still_works(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = InferenceSession(saved(RELU, tmp_path), options)
    session.run(None, {"x": ONES})
    assert Path(session.end_profiling()).stat().st_size


def test_a_profile_tells_operators_modules_and_lines_through_fusion(tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(8, 8)
            self.second = torch.nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(torch.nn.functional.gelu(self.first(x)))

    torch.onnx.export(Net().eval(), (torch.ones(2, 8),), str(tmp_path / "net.onnx"), dynamo=True, verbose=False)
    profile = InferenceSession(tmp_path / "net.onnx").profile({"x": np.ones((2, 8), np.float32)}, runs=3)
    assert {"Gemm", "Gelu"} <= {r.name for r in profile.by_op}
    assert {"first", "second"} <= {r.name for r in profile.by_module}
    assert any(__file__ in r.name for r in profile.by_line)
    assert sum(r.share for r in profile.by_node) == pytest.approx(1)
    assert "source line" in str(profile)
