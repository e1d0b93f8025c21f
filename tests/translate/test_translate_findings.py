"""Every operator in the way is reported at once, at the user's own line."""

from __future__ import annotations

from pathlib import Path

import torch
from tests.translate.made import agree, case

from torchferry import translate as stage
from torchferry.edits.translate import InlineCustomOperator
from torchferry.records.findings import CustomOperator, OperatorWithoutOnnx
from torchferry.translate.register import forget_op, register_op

LIBRARY = "torchferry_tests"


@torch.library.custom_op(f"{LIBRARY}::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    """Return twice the tensor."""
    return x * 2


@double.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Spectrum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.linalg.eigvals(x).real
        return first + torch.linalg.ldl_factor_ex(x)[0]


class Nested(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Spectrum()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x + 1)


def test_all_operators_without_onnx_are_named_with_line_and_module(tmp_path: Path) -> None:
    step = stage.translate(case(Nested(), (torch.rand(3, 3),), tmp_path))
    found = {f.operator: f.location for f in step.findings}
    assert set(found) == {"aten::linalg_eig", "aten::linalg_ldl_factor_ex"}
    assert all(isinstance(f, OperatorWithoutOnnx) for f in step.findings)
    places = [(place.file, place.module_path) for place in found.values() if place is not None]
    assert places == [(__file__, "inner")] * 2
    lines = [place.line for place in found.values() if place is not None]
    assert sorted(lines) == [first_line(), first_line() + 1]


def first_line() -> int:
    text = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(text, start=1) if "torch.linalg.eigvals(x)" in line)


def test_a_custom_operator_is_told_apart(tmp_path: Path) -> None:
    step = stage.translate(case(torch.ops.torchferry_tests.double, (torch.rand(3),), tmp_path))
    (finding,) = step.findings
    assert isinstance(finding, CustomOperator)
    assert finding.operator == f"{LIBRARY}::double"
    assert finding.has_body


def test_its_python_body_can_be_traced_instead(tmp_path: Path) -> None:
    edit = InlineCustomOperator(f"{LIBRARY}::double")
    agree(lambda x: torch.ops.torchferry_tests.double(x) + 1, (torch.rand(3),), tmp_path, edits=(edit,))


def test_a_registered_decomposition_is_used(tmp_path: Path) -> None:
    register_op(f"{LIBRARY}::double", decomposition=lambda x: x + x)
    try:
        agree(torch.ops.torchferry_tests.double, (torch.rand(3),), tmp_path)
    finally:
        forget_op(f"{LIBRARY}::double")


def test_a_registered_translation_is_used(tmp_path: Path) -> None:
    from onnxscript import opset18 as op

    register_op(f"{LIBRARY}::double", translation=lambda x: op.Add(x, x))
    try:
        agree(torch.ops.torchferry_tests.double, (torch.rand(3),), tmp_path)
    finally:
        forget_op(f"{LIBRARY}::double")


def test_a_registered_domain_becomes_one_node(tmp_path: Path) -> None:
    register_op(f"{LIBRARY}::double", domain="com.example")
    try:
        step = stage.translate(case(torch.ops.torchferry_tests.double, (torch.rand(3),), tmp_path))
    finally:
        forget_op(f"{LIBRARY}::double")
    assert step.fault is None, step.fault
    assert [(n.domain, n.op_type) for n in step.value.model.graph] == [("com.example", "Double")]
