"""Whose code a file is, told by where it lies: here, or on the machine that a stack trace was written on."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest
import torch

import torchferry
from torchferry.whose_code import Owner, innermost, lies_nowhere, owner

HERE = Path(torchferry.__file__).parent


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        ("/home/me/onnx/model.py", "user"),
        ("/srv/torch/train.py", "user"),
        ("model.py", "user"),
        ("/tmp/ipykernel_7/2291.py", "user"),
        (str(HERE / "catalogue" / "capture" / "branch_on_tensor_value.py"), "user"),
        (str(HERE / "demo.py"), "user"),
        ("/opt/venv/lib/python3.12/site-packages/transformers/models/gpt2/modeling_gpt2.py", "package"),
        ("/usr/lib/python3/dist-packages/timm/layers/norm.py", "package"),
        ("/opt/venv/lib/python3.12/site-packages/torchvision/models/resnet.py", "package"),
        (f"{sysconfig.get_paths()['purelib']}/mylib/net.py", "package"),
        ("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", "machinery"),
        ("/opt/venv/lib/python3.12/site-packages/onnxscript/values.py", "machinery"),
        ("torch/fx/graph.py", "machinery"),
        (torch.nn.__file__, "machinery"),
        (json.__file__, "machinery"),
        ("/usr/lib/python3.12/functools.py", "machinery"),
        (str(HERE / "pipeline.py"), "machinery"),
        ("<eval_with_key>.7", "machinery"),
        ("", "machinery"),
    ],
)
def test_a_file_is_the_users_a_packages_or_machinery(file: str, whose: Owner) -> None:
    assert owner(file) == whose


def test_the_innermost_line_of_the_user_is_shown_else_of_a_package() -> None:
    package, torchs = "/v/site-packages/timm/net.py", "/v/site-packages/torch/nn/modules/module.py"
    assert innermost(["/me/main.py", "/me/net.py", package, torchs]) == 1
    assert innermost([torchs, package, torchs]) == 1
    assert innermost([torchs, "<string>"]) is None


def test_code_without_a_file_may_be_the_users_where_nobody_generated_it() -> None:
    assert all(map(lies_nowhere, ("<string>", "<stdin>", "<my model>")))
    assert not any(map(lies_nowhere, ("<eval_with_key>.7", "<frozen importlib._bootstrap>", "/me/net.py", "")))
