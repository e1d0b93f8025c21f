"""The operator library against eager torch, each at the example's sizes and at others."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translate.made import agree

F = torch.nn.functional
ROWS, BOTH = {0: "b"}, {0: "b", 1: "n"}


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


MOVING: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], list[tuple[Any, ...]]]] = {
    "cdist to many": (torch.cdist, (r(2, 5, 3), r(2, 40, 3)), (BOTH, ROWS), [(r(3, 7, 3), r(3, 40, 3))]),
    "hypot": (torch.hypot, (torch.tensor([3e30, 0.0, -math.inf]), torch.tensor([4e30, 0.0, math.nan])), (), []),
    "copysign": (torch.copysign, (r(4), torch.tensor([1.0, -1.0, 0.0, -0.0])), (), []),
    "frexp": (torch.frexp, (torch.tensor([0.0, 1.0, 0.75, -8.0, 1e-40, math.inf, 3e38]),), (), []),
    "area": (lambda x: F.interpolate(x, size=(3, 2), mode="area"), (r(2, 3, 7, 5),), ({2: "h", 3: "w"},), [(r(2, 3, 9, 8),)]),
    "antialiased": (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), (r(1, 2, 9, 8),), (), []),
    "batch norm of a batch": (lambda x: F.batch_norm(x, None, None, training=True), (r(4, 3, 5),), (ROWS,), [(r(6, 3, 5),)]),
    "pool with a divisor": (lambda x: F.avg_pool2d(x, 3, 1, 1, divisor_override=2), (r(1, 2, 6, 6),), (), []),
    "masked_select broadcast": (torch.masked_select, (r(4, 3), torch.tensor([True, False, True])), (ROWS, {}), []),
    "repeat_interleave": (lambda x, k: x.repeat_interleave(k, 0), (r(3, 2), torch.tensor([1, 0, 3])), (ROWS, ROWS), []),
    "fft2": (lambda x: torch.view_as_real(torch.fft.fft2(x, s=(4, 8))), (r(2, 5, 6),), (ROWS,), [(r(3, 5, 6),)]),
    "log sigmoid": (F.logsigmoid, (r(4, 3) * 50,), (ROWS,), [(torch.tensor([[-1000.0, 0.0, 1000.0]]),)]),
}
SPECIAL = {
    "lgamma": (torch.lgamma, torch.tensor([-2.5, -0.5, 0.0, 0.5, 1.0, 2.0, 30.0, math.inf])),
    "digamma": (torch.digamma, torch.tensor([-2.5, -1.0, 0.1, 1.0, 10.0, 50.0])),
    "polygamma": (lambda x: torch.polygamma(2, x), torch.tensor([-0.5, 0.1, 1.0, 10.0])),
    "erfinv": (torch.erfinv, torch.tensor([-1.0, -0.999, 0.0, 0.5, 0.9999, 1.0])),
    "erfcx": (torch.special.erfcx, torch.tensor([-2.0, 0.0, 1.0, 30.0])),
    "log_ndtr": (torch.special.log_ndtr, torch.tensor([-30.0, -1.0, 0.0, 5.0])),
    "ndtri": (torch.special.ndtri, torch.tensor([0.0, 1e-6, 0.3, 0.9, 1.0])),
    "i0": (torch.special.i0, torch.tensor([-9.0, 0.0, 1.0, 20.0])),
    "i1e": (torch.special.i1e, torch.tensor([-9.0, 0.0, 1.0, 20.0])),
    "bessel_j0": (torch.special.bessel_j0, torch.tensor([-9.0, 0.0, 1.0, 20.0])),
    "bessel_y1": (torch.special.bessel_y1, torch.tensor([0.0, 1.0, 20.0])),
    "airy_ai": (torch.special.airy_ai, torch.tensor([-9.0, 0.0, 1.0, 20.0])),
    "legendre": (lambda x: torch.special.legendre_polynomial_p(x, 5), torch.tensor([-0.5, 0.0, 0.9, 1.0])),
}


@pytest.mark.parametrize("name", MOVING)
def test_an_operator_agrees_at_other_sizes_too(name: str, tmp_path: Path) -> None:
    function, args, axes, others = MOVING[name]
    agree(function, args, tmp_path, axes, others)


@pytest.mark.parametrize("name", SPECIAL)
def test_a_special_function_agrees_at_its_edges(name: str, tmp_path: Path) -> None:
    function, x = SPECIAL[name]
    agree(function, (x,), tmp_path)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_row_that_may_look_nowhere_gives_zeros(kind: str, tmp_path: Path) -> None:
    mask = torch.tensor([[True, False, True], [False, False, False]])
    mask = mask if kind == "bool" else torch.where(mask, 0.0, -math.inf)
    agree(F.scaled_dot_product_attention, (r(2, 2, 2, 4), r(2, 2, 3, 4), r(2, 2, 3, 4), mask), tmp_path)


def test_attention_takes_three_axes_and_grouped_heads(tmp_path: Path) -> None:
    agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (r(2, 5, 4), r(2, 7, 4), r(2, 7, 4)), tmp_path)
    grouped = (r(2, 4, 5, 8), r(2, 2, 7, 8), r(2, 2, 7, 8))
    axes = ({0: "b", 2: "l"}, {0: "b", 2: "s"}, {0: "b", 2: "s"})
    other = (r(3, 4, 2, 8), r(3, 2, 9, 8), r(3, 2, 9, 8))
    agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), grouped, tmp_path, axes, [other])


def test_singular_vectors_are_orthogonal_where_the_rank_is_short(tmp_path: Path) -> None:
    def call(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        return u.mT @ u, vh @ vh.mT, (u * s.unsqueeze(-2)) @ vh

    agree(call, (r(2, 4, 3),), tmp_path, (ROWS,), [(torch.zeros(1, 4, 3),), (r(3, 4, 1) @ r(3, 1, 3),), (torch.ones(1, 4, 3),)])


@pytest.mark.parametrize(
    "function", [lambda x: x.sum(1), lambda x: x.prod(1), lambda x: x.mean(1), lambda x: x @ x.mT, torch.linalg.det]
)
def test_nothing_comes_of_nothing(function: Callable[..., Any], tmp_path: Path) -> None:
    agree(function, (torch.zeros(2, 0, 0),), tmp_path)


def test_an_axis_that_is_not_one_stays_when_it_is_squeezed(tmp_path: Path) -> None:
    agree(lambda x: (x.squeeze(-1) + 1, x.squeeze(0), x.unsqueeze(1).squeeze(1)), (r(2, 3),), tmp_path, (ROWS,), [(r(4, 3),)])
