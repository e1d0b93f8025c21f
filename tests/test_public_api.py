"""The public face: small, explicit, importable, and cheap until it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import torch

import torchferry

PUBLIC = [
    "Budget", "Diagnosis", "Edit", "ExportError", "FeedError", "InferenceSession", "Location", "Repair", "Result",
    "TorchferryError", "Trial", "UsageError", "VerifyError", "check", "explain", "export", "register_op", "verify",
]  # fmt: skip


def test_the_public_names_are_these_and_all_can_be_imported() -> None:
    assert torchferry.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(torchferry, name) is not None


def test_export_takes_every_argument_of_torch_onnx_export() -> None:
    import torch

    from torchferry.torch_options import TAKEN_FROM_TORCH

    ours = set(inspect.signature(torchferry.export).parameters) | TAKEN_FROM_TORCH
    theirs = {n for n, p in inspect.signature(torch.onnx.export).parameters.items() if p.kind is not p.VAR_KEYWORD}
    assert theirs <= ours, theirs - ours


def test_the_first_three_arguments_of_export_are_torch_onnx_exports() -> None:
    assert list(inspect.signature(torchferry.export).parameters)[:3] == ["model", "args", "f"]


def test_importing_torchferry_loads_neither_torch_nor_onnx() -> None:
    code = "import sys, torchferry; print(sorted({'torch', 'onnx', 'onnxruntime', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_stage_of_the_same_name_does_not_hide_a_function() -> None:
    code = "import torchferry.check.reading.sniff; from torchferry.verify.judge import compare as c; import torchferry as t; "
    code += "print(t.check.__module__, t.verify.__module__, c.__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["torchferry.api", "torchferry.api", "torchferry.verify.judge.compare"]


def test_a_file_and_a_model_that_are_swapped_are_told_in_words() -> None:
    with pytest.raises(torchferry.UsageError, match="which comes first"):
        torchferry.verify("model.onnx", torch.nn.ReLU())  # type: ignore[arg-type]
