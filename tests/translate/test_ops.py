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
SQUARE = {0: "b", 1: "n", 2: "n"}


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def definite(batch: int, size: int) -> torch.Tensor:
    a = r(batch, size, size)
    return a @ a.mT + size * torch.eye(size)


def ordered(*shape: int) -> torch.Tensor:
    return r(*shape).sort()[0]


def places(size: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, size, shape, generator=torch.Generator().manual_seed(size))


MOVING: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], list[tuple[Any, ...]]]] = {
    "cumprod": (lambda x: x.cumprod(1), (r(2, 5),), (BOTH,), [(r(3, 9),), (r(3, 1),)]),
    "cumprod of integers": (lambda x: x.cumprod(1), (places(5, 2, 5),), (BOTH,), [(places(4, 3, 7),)]),
    "cummax": (lambda x: x.cummax(1), (r(2, 5).round(),), (BOTH,), [(r(3, 9).round(),)]),
    "cummin": (lambda x: x.cummin(0), (r(4, 5).round(),), (BOTH,), [(r(3, 9).round(),)]),
    "stable sort": (lambda x: x.sort(stable=True, dim=1, descending=True), (r(2, 9).round(),), (BOTH,), [(r(3, 15).round(),)]),
    "kthvalue": (lambda x: x.kthvalue(2, 1)[0], (r(2, 5),), (BOTH,), [(r(3, 9),)]),
    "median": (lambda x: x.median(1)[0], (r(2, 5),), (BOTH,), [(r(3, 8),), (torch.tensor([[1.0, math.nan, 2.0]]),)]),
    "nanmedian": (lambda x: x.nanmedian(1)[0], (torch.tensor([[1.0, math.nan, 2.0], [math.nan] * 3]),), (BOTH,), [(r(3, 8),)]),
    "mode": (lambda x: x.mode(1), (r(2, 9).round(),), (BOTH,), [(r(3, 11).round(),)]),
    "searchsorted": (torch.searchsorted, (ordered(7), r(2, 5)), ({0: "m"}, BOTH), [(ordered(9), r(3, 4))]),
    "searchsorted in rows": (
        lambda s, v: torch.searchsorted(s, v, right=True),
        (ordered(2, 7), r(2, 5)),
        (ROWS, BOTH),
        [(ordered(3, 7), r(3, 4))],
    ),
    "bucketize": (torch.bucketize, (r(2, 5), ordered(4)), (BOTH, {}), [(r(3, 4), ordered(4))]),
    "scatter mean without self": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=False),
        (r(4, 3), places(4, 5, 3), r(5, 3)),
        (ROWS, {0: "m"}, {0: "m"}),
        [(r(6, 3), places(6, 9, 3), r(9, 3))],
    ),
    "scatter amax without self": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "amax", include_self=False),
        (r(4, 3), places(4, 5, 3), r(5, 3)),
        (ROWS, {0: "m"}, {0: "m"}),
        [(r(6, 3), places(6, 9, 3), r(9, 3))],
    ),
    "index_reduce": (
        lambda x, i, s: x.index_reduce(0, i, s, "prod"),
        (r(4, 3), places(4, 5), r(5, 3)),
        (ROWS, {0: "m"}, {0: "m"}),
        [(r(6, 3), places(6, 9), r(9, 3))],
    ),
    "cdist": (torch.cdist, (r(2, 5, 3), r(2, 4, 3)), (ROWS, ROWS), [(r(3, 5, 3), r(3, 4, 3))]),
    "cdist to many": (torch.cdist, (r(2, 5, 3), r(2, 40, 3)), (BOTH, ROWS), [(r(3, 7, 3), r(3, 40, 3))]),
    "hypot": (torch.hypot, (torch.tensor([3e30, 0.0, -math.inf]), torch.tensor([4e30, 0.0, math.nan])), (), []),
    "copysign": (torch.copysign, (r(4), torch.tensor([1.0, -1.0, 0.0, -0.0])), (), []),
    "frexp": (torch.frexp, (torch.tensor([0.0, 1.0, 0.75, -8.0, 1e-40, math.inf, 3e38]),), (), []),
    "nextafter": (torch.nextafter, (torch.tensor([1.0, 1.0, 0.0, -2.0]), torch.tensor([2.0, 0.0, 1.0, -3.0])), (), []),
    "adaptive average": (
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        (r(2, 3, 7, 5),),
        ({0: "b", 2: "h", 3: "w"},),
        [(r(1, 3, 9, 8),)],
    ),
    "adaptive average 3d": (
        lambda x: F.adaptive_avg_pool3d(x, (3, 2, 1)),
        (r(2, 3, 7, 5, 4),),
        ({2: "h"},),
        [(r(2, 3, 9, 5, 4),)],
    ),
    "adaptive maximum": (
        lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
        (r(2, 3, 7, 5),),
        ({0: "b", 2: "h", 3: "w"},),
        [(r(1, 3, 9, 8),)],
    ),
    "area": (lambda x: F.interpolate(x, size=(3, 2), mode="area"), (r(2, 3, 7, 5),), ({2: "h", 3: "w"},), [(r(2, 3, 9, 8),)]),
    "antialiased": (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), (r(1, 2, 9, 8),), (), []),
    "batch norm of a batch": (lambda x: F.batch_norm(x, None, None, training=True), (r(4, 3, 5),), (ROWS,), [(r(6, 3, 5),)]),
    "pool with a divisor": (lambda x: F.avg_pool2d(x, 3, 1, 1, divisor_override=2), (r(1, 2, 6, 6),), (), []),
    "masked_select": (torch.masked_select, (r(4, 3), r(4, 3) > 0), (ROWS, ROWS), [(r(6, 3), r(6, 3) > 0)]),
    "masked_select broadcast": (torch.masked_select, (r(4, 3), torch.tensor([True, False, True])), (ROWS, {}), []),
    "histc": (lambda x: torch.histc(x, 5, -1, 1), (r(4, 3),), (ROWS,), [(r(6, 3),)]),
    "repeat_interleave": (lambda x, k: x.repeat_interleave(k, 0), (r(3, 2), torch.tensor([1, 0, 3])), (ROWS, ROWS), []),
    "fft2": (lambda x: torch.view_as_real(torch.fft.fft2(x, s=(4, 8))), (r(2, 5, 6),), (ROWS,), [(r(3, 5, 6),)]),
    "log sigmoid": (F.logsigmoid, (r(4, 3) * 50,), (ROWS,), [(torch.tensor([[-1000.0, 0.0, 1000.0]]),)]),
    "inverse": (torch.linalg.inv, (definite(2, 3),), (SQUARE,), [(definite(3, 5),), (definite(1, 2),)]),
    "solve": (torch.linalg.solve, (definite(2, 3), r(2, 3, 2)), (SQUARE, {0: "b", 1: "n"}), [(definite(3, 5), r(3, 5, 2))]),
    "determinant": (torch.linalg.det, (r(2, 3, 3),), (SQUARE,), [(r(3, 4, 4),)]),
    "slogdet": (torch.linalg.slogdet, (r(2, 3, 3),), (ROWS,), [(r(3, 3, 3),)]),
    "cholesky": (torch.linalg.cholesky, (definite(2, 3),), (SQUARE,), [(definite(3, 5),)]),
    "qr": (torch.linalg.qr, (r(2, 5, 3),), (ROWS,), [(r(3, 5, 3),)]),
    "eigvalsh": (torch.linalg.eigvalsh, (definite(2, 3),), (SQUARE,), [(definite(3, 4),)]),
    "svdvals": (torch.linalg.svdvals, (r(2, 5, 3),), (), [(r(2, 5, 3) + 1,)]),
    "pinv": (torch.linalg.pinv, (r(2, 5, 3),), (), [(r(2, 5, 3) + 1,)]),
    "matrix_exp": (torch.matrix_exp, (r(2, 3, 3),), (ROWS,), [(r(3, 3, 3),)]),
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


@pytest.mark.parametrize(
    "function", [lambda x: x.sum(1), lambda x: x.prod(1), lambda x: x.mean(1), lambda x: x @ x.mT, torch.linalg.det]
)
def test_nothing_comes_of_nothing(function: Callable[..., Any], tmp_path: Path) -> None:
    agree(function, (torch.zeros(2, 0, 0),), tmp_path)
