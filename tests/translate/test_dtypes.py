"""Dtypes that ONNX or onnxruntime lacks an operator for: computed in another one, nothing lost, the same dtype out."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest
import torch
from tests.translate.made import agree, case, run

from torchferry.translate import translate

F = torch.nn.functional
BOTH = ({0: "b", 1: "n"},)
WHOLE = torch.tensor([[3, -4, 12], [0, 18, -7]])
FLAGS = torch.tensor([[True, False, True], [False, False, True]])


def test_booleans_are_added_chosen_and_ordered(tmp_path: Path) -> None:
    def call(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        chosen = torch.where(a, a.flip(1), ~a), a.masked_fill(a, False), torch.fmax(a, a.flip(1)), torch.heaviside(a, ~a)
        ordered = *a.max(1), a.sort(stable=True, dim=1)[0], a.mode(1)[0], a.nansum(1), a.isnan()
        return (a + a.flip(1), *chosen, *ordered, torch.zeros_like(a).scatter_reduce(1, a.long(), a, "amax"))

    agree(call, (FLAGS,), tmp_path, BOTH, [(FLAGS.repeat(2, 3),)])


def test_integers_take_what_is_meant_for_floats(tmp_path: Path) -> None:
    def call(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        small = (
            a.to(torch.int8).cumsum(1),
            torch.where(a > 0, a.to(torch.int16), a.to(torch.int16) * 2),
            a.to(torch.int32).cumprod(1),
        )
        divisors = torch.gcd(a, a.flip(1)), torch.lcm(a, a.flip(1))
        return a.floor(), a.round(), F.relu(a), a.isfinite(), a.softmax(1, dtype=torch.float32), *small, *divisors

    agree(call, (WHOLE,), tmp_path, BOTH, [(WHOLE.repeat(2, 3),)])


def test_sums_of_half_precision_stay_in_it(tmp_path: Path) -> None:
    def call(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = a.half()
        return h.sum(), h.cumsum(1), h.amax(1), h.sum(1) * h[:, 0], torch.zeros_like(h).scatter_add(1, (a > 0).long(), h)

    agree(call, (WHOLE,), tmp_path, BOTH, [(WHOLE.repeat(2, 3),)])


def test_numbers_in_double_precision_are_not_rounded_to_single(tmp_path: Path) -> None:
    def call(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plain = x * 0.1 + 0.3, x.masked_fill(x > 0, 0.1), torch.add(x, x, alpha=0.1), torch.pow(0.1, x), F.leaky_relu(x, 0.1)
        curves = x.tan(), x.atan(), x.sinh(), x.asinh(), x.erf(), F.gelu(x), F.elu(x), F.softplus(x), torch.atan2(x, x.flip(1))
        return *plain, *curves, torch.full_like(x, 0.1), F.group_norm(x.unsqueeze(0), 2), torch.arange(0, 1, 0.1, dtype=x.dtype)

    x = WHOLE.double() / 9
    step = translate(case(call, (x,), tmp_path, ({1: "n"},)))
    for args in ((x,), (x.repeat(1, 2),)):
        for have, want in zip(run(step.value.path, args), call(*args), strict=True):
            torch.testing.assert_close(torch.tensor(have), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_what_is_small_survives(dtype: torch.dtype, tmp_path: Path) -> None:
    def call(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.log1p(), x.expm1()

    x = torch.tensor([1e-12, -1e-20, 1e-3, -0.5, 0.0, -0.0, 5.0], dtype=dtype)
    step = translate(case(call, (x,), tmp_path))
    for have, want in zip(run(step.value.path, (x,)), call(x), strict=True):
        torch.testing.assert_close(torch.tensor(have), want, rtol=1e-6, atol=0.0)


def test_every_cast_names_its_type(tmp_path: Path) -> None:
    translated = agree(lambda x: F.gelu(x.log1p()) + F.celu(x), (torch.rand(2, 3),), tmp_path, BOTH, [(torch.rand(4, 5),)])
    assert "CastLike" not in {node.op_type for node in ir.traversal.RecursiveGraphIterator(translated.model.graph)}


def test_half_precision_is_added_up_by_index(tmp_path: Path) -> None:
    nodes, edges = torch.zeros(5, 4).half(), torch.tensor([0, 2, 0])
    agree(lambda x, i, y: x.index_add(0, i, y), (nodes, edges, torch.randn(3, 4).half()), tmp_path)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16])
def test_bits_of_bytes_and_short_integers_are_shifted(dtype: torch.dtype, tmp_path: Path) -> None:
    def call(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return a >> 1, a << 3 & 120, torch.bitwise_left_shift(a, a[0] % 8), 1 << (a % 7)

    agree(call, (torch.arange(12).reshape(3, 4).mul(21).to(dtype),), tmp_path)
