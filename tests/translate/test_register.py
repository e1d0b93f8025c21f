"""Operators of a user's own: three ways to teach one, and a skeleton that works once its body is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime_extensions
import pytest
import torch
from tests.translate.made import agree, case

import torchferry
from torchferry import translate as stage
from torchferry.catalogue.translate.custom_operator_without_translation import skeleton
from torchferry.errors import UsageError
from torchferry.report.next_steps import snippet
from torchferry.report.view import see
from torchferry.translate.register import forget_op, register_op

NAME = "torchferry_register_tests::bent"


SCHEMA = '(Tensor x, float alpha=1.702, int[] shift=[1, 2], *, str mode="sum") -> Tensor'


@torch.library.custom_op(NAME, mutates_args=(), schema=SCHEMA)
def bent(x, alpha=1.702, shift=(1, 2), *, mode="sum"):  # type: ignore[no-untyped-def]
    """Return a quick gelu, and a number that depends on further arguments."""
    return x * torch.sigmoid(alpha * x) + (sum(shift) - 3 if mode == "sum" else 1)


@bent.register_fake
def _(x, alpha=1.702, shift=(1, 2), *, mode="sum"):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


def model(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.torchferry_register_tests.bent(x, 1.5) + 1


EXAMPLE, OTHERS = (torch.rand(3, 4),), [(torch.rand(5, 2),)]
AXES = ({0: "b", 1: "n"},)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    forget_op(NAME)


def test_a_decomposition_in_torch(tmp_path: Path) -> None:
    register_op(NAME, decomposition=lambda x, alpha=1.702, shift=(1, 2), *, mode="sum": x * torch.sigmoid(alpha * x))
    agree(model, EXAMPLE, tmp_path, AXES, OTHERS)


def test_an_onnxscript_function(tmp_path: Path) -> None:
    from onnxscript import opset18 as op

    def translation(x, alpha=1.702, shift=(1, 2), *, mode="sum"):  # type: ignore[no-untyped-def]
        return op.Mul(x, op.Sigmoid(op.Mul(x, op.CastLike(op.Constant(value_float=alpha), x))))

    register_op(NAME, translation=translation)
    agree(model, EXAMPLE, tmp_path, AXES, OTHERS)


def test_an_operator_of_another_domain_runs_where_the_runtime_has_it(tmp_path: Path) -> None:
    """onnxruntime's own domain stands for that of a library."""
    register_op(NAME, domain="com.microsoft", op_type="QuickGelu")
    translated = agree(model, EXAMPLE, tmp_path, AXES, OTHERS)
    assert translated.model.opset_imports["com.microsoft"] == 1


def test_the_library_of_a_domain_goes_along_to_the_session(tmp_path: Path) -> None:
    library = tmp_path / "libown.so"
    library.write_bytes(b"")
    register_op(NAME, domain="com.own", library=library)
    step = stage.translate(case(model, EXAMPLE, tmp_path))
    assert step.value.settings["libraries"] == [str(library)]
    register_op(NAME, domain="com.own")
    assert "libraries" not in stage.translate(case(model, EXAMPLE, tmp_path)).value.settings


@torch.library.custom_op("torchferry_register_tests::split_by_sign", mutates_args=())
def split_by_sign(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is below zero and what is above it; onnxruntime-extensions has it as `NegPos`."""
    return x.clamp(max=0), x.clamp(min=0)


@split_by_sign.register_fake
def _(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


class Leaking(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        below, above = torch.ops.torchferry_register_tests.split_by_sign(x)
        return above + 0.1 * below


def test_an_operator_of_a_real_library_is_exported_verified_and_run_as_the_report_says(tmp_path: Path) -> None:
    library, name = onnxruntime_extensions.get_library_path(), "torchferry_register_tests::split_by_sign"
    register_op(name, domain="ai.onnx.contrib", op_type="NegPos", library=library)
    try:
        result = torchferry.export(Leaking(), EXAMPLE, tmp_path / "leaking.onnx")
    finally:
        forget_op(name)
    assert result.ok, str(result)
    assert result.trials
    assert {"ai.onnx.contrib"} < {opset.domain for opset in onnx.load(result.path).opset_import}
    said: dict[str, Any] = {}
    exec(snippet(see(result)), said)  # as it stands in the report, in a session of its own
    assert said["outputs"][0].shape == (2, 2)


def test_a_library_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no library"):
        register_op(NAME, domain="com.own", library=tmp_path / "none.so")
    with pytest.raises(UsageError, match="exactly one"):
        register_op(NAME, domain="com.own", decomposition=lambda x: x)


def test_the_skeleton_works_once_its_body_is_written(tmp_path: Path) -> None:
    (finding,) = stage.translate(case(model, EXAMPLE, tmp_path)).findings
    pasted = skeleton(NAME, finding.schema)
    assert "def bent(x, alpha=1.702, shift=[1, 2], *, mode=" in pasted
    exec(pasted.replace("return ...", "return x * torch.sigmoid(alpha * x)"), {})
    agree(model, EXAMPLE, tmp_path, AXES, OTHERS)
