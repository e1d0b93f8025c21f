"""A run that fails answers at once, with what a lookup tells; the search for the cause is made on request, and once."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import torchferry
from torchferry import catalogue, worker
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY
from torchferry.records import Tolerance
from torchferry.records.findings import FeedFinding
from torchferry.runtime import explain, feed_words
from torchferry.runtime.session import InferenceSession, SessionError

TABLE = """<ir_version: 8, opset_import: ["": 18]> g (int64[batch, length] ids) => (float[batch, length, 1] y)
    <float[3, 1] w = {1, 2, 3}> { [look] y = Gather (w, ids) }"""
TIED = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, float[N, 3] mask) => (float[N, 3] y) { y = Mul (x, mask) }'
IMAGE = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y) { y = Relu (x) }'


def certificate(**changed: Any) -> dict[str, Any]:
    held: dict[str, Any] = {
        "dims": {"batch": "batch = 1..", "length": "length = 1..2 (w has 2 rows)"},
        "inputs": {"ids": ["int64", ["batch", "length"]]},
        "ranges": {"batch": [1, 64], "length": [1, 2]},
        **{key: [] for key in ("conditions", "given_up", "repairs", "notes")},
        **{key: {} for key in ("fixed", "trials", "sizes_tried", "versions")},
        "tolerance": {**asdict(Tolerance(0.0, 0.0, "")), "columns": []},
        "worst": 0.0,
        "fingerprint": {"graph": "", "weights": "", "opsets": {}, "ir_version": 8},
    }
    return {**held, **changed}


def opened(text: str, folder: Path, held: Any = None, **options: Any) -> InferenceSession:
    model = onnx.parser.parse_model(text)
    if held is not None:
        model.metadata_props.add(key=CERTIFICATE_KEY, value=held if isinstance(held, str) else json.dumps(held))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return InferenceSession(path, **options)


def failed(session: InferenceSession, feed: dict[str, Any]) -> SessionError:
    with pytest.raises(SessionError) as caught:
        session.run(None, feed)
    return caught.value


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The child processes that are started, counted."""
    begun: list[int] = []
    start = worker.Worker._start
    monkeypatch.setattr(worker.Worker, "_start", lambda self: (begun.append(1), start(self))[1])
    return begun


FAR = {"ids": np.full((1, 3), 7)}


def test_an_error_starts_no_process_and_says_how_to_learn_more(tmp_path: Path, starts: list[int]) -> None:
    error = failed(opened(TABLE, tmp_path), FAR)
    assert "out of data bounds" in str(error)
    assert "`error.explain()`" in str(error)
    assert "60 s" in str(error)
    assert not starts


def test_the_search_is_made_on_request_and_once_for_each_cause(tmp_path: Path, starts: list[int]) -> None:
    session = opened(TABLE, tmp_path)
    assert "RUN015" in failed(session, FAR).explain()
    first = len(starts)
    assert first
    assert "RUN015" in failed(session, FAR).explain()
    assert len(starts) == first
    assert "value 8" in failed(session, {"ids": np.full((1, 2), 8)}).explain()
    assert len(starts) > first


def test_explanations_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(TABLE, tmp_path)
    monkeypatch.setattr("torchferry.runtime.session.explain", lambda source, feed, seconds: "found")
    for size in range(200):
        assert failed(session, {"ids": np.full((1, size + 1), 7)}).explain() == "found"
    assert len(session._found) <= 64


def test_an_explanation_keeps_to_the_seconds_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    monkeypatch.setattr(explain, "diagnoses", lambda source, feed, seconds: given.append(seconds) or [])
    error = failed(opened(TABLE, tmp_path), FAR)
    assert error.explain(2.5) == str(error), "nothing found: what is known already"
    error.explain()
    assert given == [2.5, explain.SECONDS]


def test_a_size_beyond_the_certificate_is_said_when_the_run_fails(tmp_path: Path) -> None:
    error = failed(opened(TABLE, tmp_path, certificate()), FAR)
    assert "dim 1 of `ids` is 3; the certificate in the file is for 1..2 (length = 1..2 (w has 2 rows))" in str(error)
    assert "batch" not in str(error)


def test_a_size_beyond_the_certificate_forbids_no_run(tmp_path: Path) -> None:
    assert opened(TABLE, tmp_path, certificate()).run(None, {"ids": np.ones((100, 3), np.int64)})[0].shape == (100, 3, 1)


@pytest.mark.parametrize(
    "held",
    ["", "no JSON", "[" * 100_000, "[]", certificate(ranges={"length": []}), certificate(ranges={"length": [None, None]}),
     certificate(inputs={"ids": ["int64", [1.5]], "other": ["int64", ["length"]]}), certificate(ranges=7)],
)  # fmt: skip
def test_a_certificate_that_says_nothing_sensible_takes_nothing_from_the_error(held: Any, tmp_path: Path) -> None:
    error = failed(opened(TABLE, tmp_path, held), FAR)
    assert "out of data bounds" in str(error)
    assert "is for" not in str(error)


def test_sizes_that_disagree_are_named(tmp_path: Path) -> None:
    feed = {"x": np.ones((2, 3), np.float32), "mask": np.ones((4, 3), np.float32)}
    assert "RUN014: dim 0 of `mask` must be N = 2" in str(failed(opened(TIED, tmp_path), feed))


def test_channels_last_are_recognised(tmp_path: Path) -> None:
    text = str(failed(opened(IMAGE, tmp_path), {"x": np.ones((1, 8, 8, 3), np.float32)}))
    assert "RUN012" in text
    assert "from NHWC to NCHW" in text


def test_a_strict_session_names_the_input_of_another_type(tmp_path: Path) -> None:
    error = failed(opened(TIED, tmp_path, strict=True), {"x": np.ones((2, 3)), "mask": np.ones((2, 3), np.float32)})
    assert "RUN004: `x` is float64, the file takes float32" in str(error)


def test_values_of_onnxruntimes_own_are_held_against_the_declaration_by_shape_alone(tmp_path: Path) -> None:
    session = opened(IMAGE, tmp_path)
    value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones((1, 4, 8, 8), np.float32))
    with pytest.raises(SessionError, match=r"RUN012.*`x`: its dim 1 is fixed to 3") as caught:
        session.run_with_ort_values(None, {"x": value})
    assert "RUN012" in caught.value.explain()


def test_the_codes_are_those_of_the_catalogue() -> None:
    told = {k: e.code for e in catalogue.load() for k in getattr(e.rule, "kinds", ()) if issubclass(k, FeedFinding)}
    assert told == feed_words.CODES


COLD = """
import sys, numpy as np
from torchferry.runtime.session import InferenceSession
session = InferenceSession(sys.argv[1])
for feed in ({}, {"x": np.ones((2, 4), np.float32), "mask": np.ones((1, 3), np.float32)}):
    try:
        session.run(None, feed)
    except Exception as error:
        assert "RUN0" in str(error), error
print(sum(name.startswith("torchferry.catalogue.") for name in sys.modules), "torch" in sys.modules)
"""


def test_the_first_error_loads_no_more_of_the_catalogue_than_its_words(tmp_path: Path) -> None:
    opened(TIED, tmp_path)
    command = [sys.executable, "-c", COLD, str(tmp_path / "model.onnx")]
    loaded, torch = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(loaded) < 10
    assert torch == "False"


def test_errors_leave_nothing_behind(tmp_path: Path) -> None:
    session = opened(TABLE, tmp_path)
    assert type(failed(session, FAR)) is type(failed(session, FAR)), "a class is made once for each of onnxruntime's"
    gc.collect()
    gc.disable()
    try:
        session.run(None, FAR)
    except SessionError as error:
        gone = weakref.ref(error)
    finally:
        gc.enable()
    assert gone() is None, "no cycle keeps the feed alive"


def test_functions_without_end_are_refused_before_they_are_written_out(tmp_path: Path) -> None:
    """Forty functions, each of which calls the one before twice."""
    parts = ['<ir_version: 8, opset_import: ["": 18, "d": 1]> g (float[N] x) => (float[N] y) { y = d.f39 (x) }']
    for i in range(40):
        inner = f"d.f{i - 1}" if i else "Relu"
        parts.append(f'<domain: "d", opset_import: ["": 18, "d": 1]> f{i} (a) => (c) {{ b = {inner} (a) c = {inner} (b) }}')
    model = onnx.parser.parse_model("\n".join(parts))
    onnx.save(model, tmp_path / "model.onnx")
    for source in (tmp_path / "model.onnx", model.SerializeToString()):
        with pytest.raises(SessionError, match="functions call each other"):
            InferenceSession(source)


def test_functions_that_lead_too_deep_are_refused_before_the_stack_is_full(tmp_path: Path) -> None:
    """Three thousand functions, each of which calls the one before."""
    own = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("d", 1)]
    calls = [onnx.helper.make_node(f"f{i - 1}" if i else "Relu", ["a"], ["b"], domain="d" if i else "") for i in range(3001)]
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "d": 1]> g (float[N] x) => (float[N] y) { y = d.f2999 (x) }'
    )
    model.functions.extend(onnx.helper.make_function("d", f"f{i}", ["a"], ["b"], [calls[i]], own) for i in range(3000))
    onnx.save(model, tmp_path / "model.onnx")
    for source in (tmp_path / "model.onnx", model.SerializeToString()):
        with pytest.raises(SessionError, match="3,000 deep"):
            InferenceSession(source)
    told = torchferry.check(tmp_path / "model.onnx", repair="off")
    assert [d.code for d in told.diagnoses] == ["CHK030"]
    assert "3,000 deep" in str(told)
