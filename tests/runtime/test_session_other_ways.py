"""The other ways to run a session: asynchronously, on OrtValues; and the words for what was asked wrongly."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

from torchferry import InferenceSession
from torchferry.errors import FeedError
from torchferry.runtime.session import CoercionWarning, SessionError

TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] total) { [twice] total = Add (x, x) }'
ONES = np.ones((2, 3), np.float32)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    return str(path)


def answer_of(session: InferenceSession, feed: dict[str, Any], names: list[str] | None = None) -> tuple[list[Any], Any, str]:
    answered, kept = threading.Event(), []

    def callback(outputs: list[Any], given: Any, error: str) -> None:
        kept.append((outputs, given, error))
        answered.set()

    session.run_async(names, feed, callback, "mine")
    assert answered.wait(60)
    return kept[0]


def test_an_asynchronous_run_coerces_its_feed_and_says_so(file: str) -> None:
    with pytest.warns(CoercionWarning, match=r"RUN004.*`x`.*float64"):
        outputs, given, error = answer_of(InferenceSession(file), {"x": ONES.astype(np.float64)})
    assert np.array_equal(outputs[0], 2 * ONES)
    assert (given, error) == ("mine", "")


def test_an_asynchronous_run_that_fails_is_explained(file: str) -> None:
    outputs, _, error = answer_of(InferenceSession(file), {"x": np.ones((2, 4), np.float32)})
    assert outputs == []
    assert "RUN012" in error
    assert "onnxruntime said: " in error


def test_an_asynchronous_run_refuses_what_would_lose_something(file: str) -> None:
    with pytest.raises(FeedError, match=r"RUN005.*`x`"):
        answer_of(InferenceSession(file), {"x": ONES * 1j})


def test_a_run_on_ort_values_that_fails_is_explained(file: str) -> None:
    session = InferenceSession(file)
    given = onnxruntime.OrtValue.ortvalue_from_numpy(ONES)
    assert np.array_equal(session.run_with_ort_values(None, {"x": given})[0].numpy(), 2 * ONES)
    wrong = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones((2, 4), np.float32))
    with pytest.raises(SessionError, match=r"RUN012.*`x`[\s\S]*onnxruntime said: "):
        session.run_with_ort_values(None, {"x": wrong})


def test_an_output_that_is_not_there_is_named_with_those_that_are(file: str) -> None:
    with pytest.raises(SessionError, match=r"no output `totl`.*`total`"):
        InferenceSession(file).run(["totl"], {"x": ONES})


def test_a_warning_points_at_the_line_that_fed_it(file: str) -> None:
    with pytest.warns(CoercionWarning) as told:
        InferenceSession(file).run(None, {"x": ONES.astype(np.float64)})
    assert [w.filename for w in told] == [__file__]


def test_all_of_the_original_is_listed(file: str) -> None:
    original = {n for n in dir(onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])) if not n.startswith("_")}
    assert original <= set(dir(InferenceSession(file)))


def test_a_provider_may_be_named_by_itself(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = InferenceSession(file, providers="CPUExecutionProvider")  # type: ignore[arg-type]
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert capfd.readouterr().out == ""
