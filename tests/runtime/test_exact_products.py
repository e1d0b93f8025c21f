"""Files whose 8-bit sums the processor cuts off: opened with the right numbers, and told so; all others as they are."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from torchferry.runtime.exact_products import ProcessorWarning, exact_products
from torchferry.runtime.session import InferenceSession
from torchferry.saturation.elsewhere import without_vnni

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[N, 2] x) => (float[N, 2] y) <int8[2, 2] w = {%s}> {
    a, s, z = DynamicQuantizeLinear (x)  sums = MatMulInteger (a, w, z)  real = Cast <to: int = 1> (sums)  y = Mul (real, s) }"""
LARGE, SMALL = "127, -127, -127, 100", "64, -64, 3, 10"  # neighbours of opposite signs: cut off on no processor, in truth
FEED = {"x": np.array([[1.0, 0.5], [0.25, 1.0]], np.float32)}


def saved(weights: str, folder: Path, *, aside: bool = False) -> Path:
    model, path = onnx.parser.parse_model(TEXT % weights), folder / "model.onnx"
    stored = model.graph.initializer[0]
    stored.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(stored), "w"))
    onnx.save_model(model, str(path), save_as_external_data=aside, location="weights.data", size_threshold=0)
    return path


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_session_on_such_a_file_says_so_and_is_right(
    tmp_path: Path, aside: bool, as_bytes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where weights of a model that comes as bytes are looked for
    path = saved(LARGE, tmp_path, aside=aside)
    plain = onnxruntime.InferenceSession(path).run(None, FEED)[0]
    with without_vnni(), pytest.warns(ProcessorWarning, match="CHK050: .* a product whose sums this processor cuts off") as told:
        session = InferenceSession(path.read_bytes() if as_bytes else path)
    assert ("torchferry check" in str(told[0].message)) is not as_bytes
    assert Path(told[0].filename) == Path(__file__), "the warning points to the line that opened the file"
    np.testing.assert_array_equal(session.run(None, FEED)[0], plain)


def test_small_weights_and_other_processors_need_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings(), without_vnni():
        warnings.simplefilter("error", ProcessorWarning)
        assert exact_products(saved(SMALL, tmp_path)) is None
        InferenceSession(saved(SMALL, tmp_path))


def test_who_asked_onnxruntime_for_precise_products_is_left_alone(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    with warnings.catch_warnings(), without_vnni():
        warnings.simplefilter("error", ProcessorWarning)
        InferenceSession(saved(LARGE, tmp_path), options)


def test_what_is_no_model_is_left_to_the_session(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"no model")
    with without_vnni():
        assert exact_products(tmp_path / "no.onnx") is None
        assert exact_products(tmp_path / "missing.onnx") is None
