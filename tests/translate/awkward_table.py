"""Operators where they are seldom tried: at infinity, in the tails, on singular matrices, spread or cut to another size."""

from __future__ import annotations

import math

import torch
from tests.translate.operator_table import (
    ROWS,
    SIZES,
    SQUARE,
    TALL,
    Args,
    F,
    L,
    Row,
    S,
    definite,
    numbers,
    plane,
    positive,
    tall,
    with_nan,
)


def beyond(b: int, n: int, dtype: torch.dtype) -> Args:
    """Numbers beside infinities and zeros of either sign, and the same in another order."""
    x = numbers(b, n, dtype=dtype).flatten()
    for place, value in enumerate((math.inf, -0.0, -math.inf, 0.0)[: x.numel()]):
        x[place] = value
    x = x.reshape(b, n)
    return x, x.flip(1)


def singular(b: int, n: int, dtype: torch.dtype) -> Args:
    """Matrices of which the first has no inverse, and the second is not positive definite."""
    a = definite(b, n, dtype)[0].clone()
    if b > 1:
        a[0, -1], a[0, :, -1], a[1, -1, -1] = 0, 0, -5
    return (a,)


def vectors_of(a: torch.Tensor) -> Args:
    """What eigenvectors and singular vectors are whatever the matrix: orthogonal, of length 1."""
    _, q = L.eigh(a)
    u, _, vh = L.svd(a)
    return q.mT @ q, u.mT @ u, vh @ vh.mT


def reflectors(b: int, n: int, dtype: torch.dtype) -> Args:
    return *tall(b, n, dtype), numbers(b, n, dtype=dtype) / 9


def signal(b: int, n: int, dtype: torch.dtype) -> Args:
    return (numbers(b, 2, n, dtype=dtype),)


def kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(18, dtype=x.dtype).reshape(2, 3, 3) / 9


def volume(b: int, n: int, dtype: torch.dtype) -> Args:
    return numbers(b, 2, 3, n, 1, dtype=dtype), numbers(b, 4, 2, 2, 3, dtype=dtype)


AWKWARD: dict[str, Row] = {
    "copied and spread": Row(
        lambda x: (x.clone().copy_(x[0]), torch.zeros_like(x).copy_(x[:, :1]), torch.zeros_like(x, dtype=torch.int32).copy_(x)),
        plane,
        dtypes="fl",
        sizes=SIZES,
    ),
    "reductions of no rows": Row(
        lambda x: (x.sum(-1), x.mean(-1, keepdim=True), x.amax(-1), x.argmax(-1), x.norm(dim=-1), x.logsumexp(-1), x.all(-1)),
        plane,
    ),
    "distances of no pairs": Row(F.pdist, lambda b, n, t: (numbers(n, 3, dtype=t),), ({0: "n"},), "f", ((2, 5), (2, 1), (2, 2))),
    "what LAPACK says of a matrix": Row(
        lambda a: (L.inv_ex(a)[1], L.lu_factor_ex(a)[2], L.solve_ex(a, a)[1], L.cholesky_ex(a)[1]),
        singular,
        (SQUARE,),
        sizes=SIZES,
    ),
    "powers of a matrix": Row(
        lambda a: tuple(L.matrix_power(a / 16, power) for power in (0, 1, 3, -1)), definite, (SQUARE,), "f", SIZES
    ),
    "cond": Row(L.cond, definite, (SQUARE,), "f", ((2, 5), (3, 2), (1, 1))),
    "vectors of matrices of low rank": Row(
        lambda x: vectors_of(x.unsqueeze(-1) * x.unsqueeze(-2)), positive, ({1: "n"},), "f", ((2, 5), (2, 4))
    ),
    "products of reflections": Row(
        lambda a, tau: (
            L.householder_product(a * 1e3, tau * 1e3),
            torch.ormqr(a, tau, a),
            torch.ormqr(a, tau, a, transpose=True),
            torch.ormqr(a, tau, a.mT, left=False),
            torch.ormqr(a, tau, a.mT, left=False, transpose=True),
        ),
        reflectors,
        (*TALL, ROWS),
        sizes=((2, 3), (3, 4), (1, 1)),
    ),
    "trigamma": Row(lambda x: (S.polygamma(1, x), S.polygamma(1, x * 1e30)), plane, dtypes="f"),  # in float64 a pole is rounding
    "igamma of large numbers": Row(
        lambda x: (
            torch.igammac(torch.ones_like(x), x * 40),
            torch.igamma(x * 9e3, x * 9001),
            torch.igammac(x * 9e3, x * 9001),
            torch.igamma(x * 1e6, x * 1e6),
        ),
        positive,
    ),
    "igamma at infinity": Row(lambda x, y: (torch.igamma(x, y), torch.igammac(x, y)), beyond, (ROWS, ROWS), "f"),
    "nextafter from infinity": Row(torch.nextafter, beyond, (ROWS, ROWS)),
    "nonzero_static": Row(
        lambda x: (torch.nonzero_static(x, size=4), torch.nonzero_static(x > 0, size=20, fill_value=7)), plane, sizes=SIZES
    ),
    "one number among whole ones": Row(
        lambda x: (torch.bucketize(0.3, x[0].sort()[0]), torch.searchsorted(x[0].sort()[0], 0.3)),
        plane,
        dtypes="lf",
        sizes=SIZES,
    ),
    "quantile": Row(
        lambda x: (
            x.quantile(0.3, -1),
            x.nanquantile(0.5, 0, keepdim=True),
            x.quantile(torch.tensor([0.0, 0.5, 1.0], dtype=x.dtype), 0, interpolation="nearest"),
            x.nanquantile(0.4, interpolation="midpoint"),
        ),
        with_nan,
        sizes=SIZES,
    ),
    "transposed convolution past a stride": Row(
        lambda x: (
            F.conv_transpose1d(x, kernel(x), output_padding=1, dilation=2),
            F.conv_transpose1d(x[0], kernel(x), x[0, 0, :1].expand(3), padding=1, output_padding=2, dilation=3, stride=2),
        ),
        signal,
        ({0: "b", 2: "n"},),
        "f",
        SIZES,
    ),
    "a volume with a flat side": Row(
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=True),
        volume,
        ({0: "b", 3: "n"}, {0: "b"}),
        "f",
        SIZES,
    ),
}
