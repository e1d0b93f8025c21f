"""onnxruntime, as the door has it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from torchferry.errors import ForeignApiMoved
from torchferry.foreign import onnxruntime as door


def model(kind: str = "float", node: str = "y = Identity (x)") -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]> g ({kind}[N] x) => ({kind}[N] y) {{ {node} }}'
    return onnx.parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize("level", door.LEVELS)
def test_a_session_runs_at_every_level(level: str, tmp_path: Path) -> None:
    opened = door.session(model(), level=level, optimised_to=tmp_path / "optimised.onnx")
    assert door.run(opened, {"x": np.array([1, 2], np.float32)})[0].tolist() == [1, 2]
    assert (tmp_path / "optimised.onnx").is_file()


def test_types_that_numpy_does_not_know_go_in_and_come_out() -> None:
    given = np.array([1.5, 2], ml_dtypes.bfloat16)
    [got] = door.run(door.session(model("bfloat16")), {"x": given})
    assert got.dtype == given.dtype
    assert got.tolist() == [1.5, 2]


def test_the_limits_are_in_the_words_of_a_refusal() -> None:
    ir_version, opset = door.limits()
    assert ir_version >= 10
    assert opset >= 21


def test_other_words_are_told_with_the_installed_release(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ForeignApiMoved, match=f"onnxruntime {door.version()} keeps the words for the versions that it takes"):
        door._told(b"no model at all", r"max supported IR version: (\d+)")


def test_the_private_module_tells_kernels_and_schemas() -> None:
    kernels = door.kernels()
    assert ("", "Add") in kernels
    assert all(first <= last and constraints for first, last, constraints in kernels["", "Add"])
    fused = door.schema("com.microsoft", "FusedMatMul")
    assert fused is not None
    assert {"transA", "alpha"} <= set(fused.attributes)
    assert door.schema("com.microsoft", "NoSuchOperator") is None


def test_a_build_without_these_functions_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxruntime.capi import onnxruntime_pybind11_state

    monkeypatch.delattr(onnxruntime_pybind11_state, "get_all_opkernel_def")
    assert door.kernels.__wrapped__() == {}


def test_the_words_of_a_refusal_are_cleared_of_paths_and_codes() -> None:
    with pytest.raises(Exception, match="ONNXRuntimeError") as refused:
        door.session(model(node="y = com.microsoft.NoSuchOperator (x)"))
    assert "NoSuchOperator" in door.said(str(refused.value))
    assert "ONNXRuntimeError" not in door.said(str(refused.value))
