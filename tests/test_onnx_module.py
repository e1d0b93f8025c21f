"""`torchferry.onnx` stands in for `torch.onnx`: another export, and all the rest as it was."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import torch

import torchferry
import torchferry.onnx as stand_in


def test_it_has_every_name_of_torch_onnx() -> None:
    assert set(torch.onnx.__all__) <= set(dir(stand_in))
    for name in (*torch.onnx.__all__, "register_custom_op_symbolic", "TrainingMode", "OperatorExportTypes", "symbolic_helper"):
        assert getattr(stand_in, name) is not None


def test_export_the_program_and_the_error_are_ours_and_the_rest_is_torchs() -> None:
    assert stand_in.export is torchferry.export
    assert stand_in.ONNXProgram is torchferry.Result
    assert issubclass(torchferry.ExportError, stand_in.OnnxExporterError)
    assert issubclass(torchferry.UsageError, stand_in.OnnxExporterError)
    assert stand_in.is_in_onnx_export is torch.onnx.is_in_onnx_export
    with pytest.raises(AttributeError, match="neither has torchferry"):
        stand_in.no_such_thing


def test_its_utils_export_by_us_too() -> None:
    from torchferry.onnx import utils
    from torchferry.onnx.utils import export, select_model_mode_for_export

    assert stand_in.utils is utils
    assert export is utils.export is torchferry.export
    assert select_model_mode_for_export is torch.onnx.utils.select_model_mode_for_export
    with pytest.raises(AttributeError):
        _ = utils.no_such_thing


def test_a_symbolic_of_the_old_exporter_is_said_to_change_nothing() -> None:
    with pytest.warns(UserWarning, match="custom_translation_table"):
        assert stand_in.register_custom_op_symbolic is torch.onnx.register_custom_op_symbolic


def test_it_can_be_put_in_the_place_of_torch_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "onnx", stand_in)
    assert torch.onnx.export is torchferry.export
    assert torch.onnx.TrainingMode.EVAL is not None
    assert not torch.onnx.is_in_onnx_export()
    result = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2, 3),), budget=torchferry.Budget(trials=2, mutants=0))
    assert isinstance(result, torch.onnx.ONNXProgram)


def test_importing_it_loads_neither_torch_nor_onnx_and_hides_neither() -> None:
    code = "import sys, torchferry.onnx; print(sorted({'torch', 'onnx', 'numpy'} & set(sys.modules))); "
    code += "import onnx; print(onnx.ModelProto.__name__); from torchferry import onnx; print(onnx.__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:3] == ["[]", "ModelProto", "torchferry.onnx"]


def test_a_result_has_what_scripts_use_of_an_onnxprogram() -> None:
    public = {name for name, _ in inspect.getmembers(torch.onnx.ONNXProgram) if not name.startswith("_")}
    assert public <= set(dir(torchferry.Result)), public - set(dir(torchferry.Result))
