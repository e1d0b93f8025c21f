"""The exponential of a matrix as torch computes it: a Taylor sum of degree 18 in five products, scaled down and squared back.

The sum is that of Bader, Blanes and Casas (2019). Its rounding is torch's own, which matters: where terms of the exponential
cancel, any other order of the same sum differs in the third digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed.loop import repeat

LARGEST = {torch.float32: 3.010066362817634, torch.float64: 1.090863719290036}  # norm up to which the sum is exact enough
SQUARINGS = 40
COEFFICIENTS = (  # of 1, A, A^2, A^3 and A^6
    (0.0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0.0),
    (0.0, 3.97849749499645077844e-01, 1.36783778460411720168, 4.98289622525382669416e-01, -6.37898194594723280150e-04),
    (
        -1.09676396052962061844e01,
        1.68015813878906206114,
        5.71779846478865511061e-02,
        -6.98210122488052056106e-03,
        3.34975017086070470649e-05,
    ),
    (
        -9.04316832390810593223e-02,
        -6.76404519071381882256e-02,
        6.75961301770459654925e-02,
        2.95552570429315521194e-02,
        -1.39180257516060693404e-05,
    ),
    (0.0, 0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05),
)


def matrix_exp(a: Tensor) -> Tensor:
    """Return the exponential of each matrix."""
    norms = a.abs().sum(-2)
    if a.numel() == 0 or norms.dtype not in LARGEST:
        return a.clone() if a.numel() == 0 else NotImplemented
    norm = norms.amax(-1)
    halvings = (norm / LARGEST[norm.dtype]).log2().ceil().clamp(0, SQUARINGS)
    x = a * torch.exp2(-halvings).unsqueeze(-1).unsqueeze(-1)

    def step(k: Tensor, m: Tensor, left: Tensor) -> list[Tensor]:
        return [torch.where((k < left).unsqueeze(-1).unsqueeze(-1), m.matmul(m), m), left]

    return repeat(SQUARINGS, [_taylor(x), halvings], step)[0]


def _taylor(x: Tensor) -> Tensor:
    square = x.matmul(x)
    cube = x.matmul(square)
    powers = [torch.eye(x.shape[-1], dtype=x.dtype), x, square, cube, cube.matmul(cube)]
    sums = []
    for row in COEFFICIENTS:
        terms = [power * c for power, c in zip(powers, row, strict=True) if c]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        sums.append(total)
    ninth = sums[0].matmul(sums[4]) + sums[3]
    return sums[1] + (sums[2] + ninth).matmul(ninth)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.linalg_matrix_exp.default: matrix_exp}
