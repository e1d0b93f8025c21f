"""Linear systems by elimination, a column at a time as LAPACK does it: LU, solve, inv, det, Cholesky, triangular solves.

Loops over columns become one ONNX Scan, so the graph's size does not depend on the matrix. In float32 the results agree
with LAPACK's to about 1e-6 times the condition number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.decomposed import rearranging
from torchferry.ops.decomposed.loop import repeat


def column(a: Tensor, k: Tensor) -> Tensor:
    """Return column k as [..., n, 1]."""
    return a.index_select(-1, k.reshape(1))


def row(a: Tensor, k: Tensor) -> Tensor:
    """Return row k as [..., 1, n]."""
    return a.index_select(-2, k.reshape(1))


def diagonal(a: Tensor) -> Tensor:
    """Return the main diagonal of each matrix."""
    return rearranging.diagonal(a, 0, -2, -1)


def _smaller(a: Tensor) -> Any:
    """Return the length of the diagonal."""
    return torch.sym_min(a.shape[-2], a.shape[-1])


def _weight(x: Tensor) -> Tensor:
    """Return what LAPACK chooses a pivot by: the size, and of complex numbers that of both parts."""
    return x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()


def lu_packed(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return L and U in one matrix, LAPACK's pivots (from 1), and the order of rows that they amount to."""
    batch, rows = a.shape[:-2], a.shape[-2]
    order = torch.arange(rows).expand(*batch, rows).clone()
    pivots = torch.zeros(*batch, _smaller(a), dtype=torch.int32)

    def step(k: Tensor, m: Tensor, order: Tensor, pivots: Tensor) -> list[Tensor]:
        places, across = torch.arange(m.shape[-2]), torch.arange(m.shape[-1])
        size = torch.where(places >= k, _weight(column(m, k).squeeze(-1)), -1.0)
        best = size.argmax(-1, keepdim=True)
        swapped = torch.where(places == k, best, torch.where(places == best, k, places))
        m = m.gather(-2, swapped.unsqueeze(-1).expand_as(m))
        pivot = column(row(m, k), k)
        below = (places > k).unsqueeze(-1)
        safe = torch.where(pivot == 0, torch.ones_like(pivot), pivot)
        factor = torch.where(below, column(m, k) / safe, torch.zeros_like(pivot))
        right = torch.where(across > k, row(m, k), torch.zeros_like(pivot))
        m = torch.where(below & (across == k), factor, m - factor * right)
        taken = torch.where(torch.arange(pivots.shape[-1]) == k, (best + 1).to(torch.int32), pivots)
        return [m, order.gather(-1, swapped), taken]

    packed, order, pivots = repeat(_smaller(a), [a.clone(), order, pivots], step)
    return packed, pivots, order


def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return X with A X = B, or X A = B where `left` is False; only one triangle of A is read."""
    if not left:
        turned = solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular)
        return turned.mT
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]).clone()
    size = a.shape[-1]

    def step(k: Tensor, x: Tensor, a: Tensor) -> list[Tensor]:
        here = size - 1 - k if upper else k
        places = torch.arange(size).unsqueeze(-1)
        value = row(x, here)
        value = value if unitriangular else value / column(row(a, here), here)
        later = places < here if upper else places > here
        rest = torch.where(later, column(a, here), torch.zeros((), dtype=a.dtype))
        return [torch.where(places == here, value, x - rest * value), a]

    return repeat(size, [b, a.clone()], step)[0]


def lu_apply(packed: Tensor, order: Tensor, b: Tensor) -> Tensor:
    """Return X with A X = B from A's factors."""
    batch = torch.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    b = b.expand(*batch, *b.shape[-2:])
    order = order.expand(*batch, order.shape[-1])
    turned = b.gather(-2, order.unsqueeze(-1).expand_as(b))
    return solve_triangular(packed, solve_triangular(packed, turned, upper=False, unitriangular=True), upper=True)


def solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    """Return X with A X = B; a vector is solved as one column."""
    if not left:
        return solve(a.mT, b.mT).mT
    vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and str(tuple(b.shape)) == str(tuple(a.shape[:-1])))
    packed, _, order = lu_packed(a)
    x = lu_apply(packed, order, b.unsqueeze(-1) if vector else b)
    return x.squeeze(-1) if vector else x


def inverse(a: Tensor) -> Tensor:
    """Return the inverse."""
    return inv_ex(a)[0]


def _first(failed: Tensor) -> Tensor:
    """Return LAPACK's word on the steps along the last axis: which one failed first, counted from 1, or 0."""
    before = (failed.to(torch.int32).cumsum(-1) == 0).sum(-1)
    return torch.where(before == failed.shape[-1], 0, before + 1).to(torch.int32)


def _singular(packed: Tensor) -> Tensor:
    """Return which pivot is zero first."""
    return _first(diagonal(packed) == 0)


def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """Return the inverse, and where the matrix turned out to be singular."""
    packed, _, order = lu_packed(a)
    return lu_apply(packed, order, torch.eye(a.shape[-1], dtype=a.dtype)), _singular(packed)


def _odd_swaps(pivots: Tensor) -> Tensor:
    """Return -1 where the pivots swap rows an odd number of times."""
    moved = (pivots != torch.arange(1, pivots.shape[-1] + 1)).sum(-1)
    return 1 - 2 * torch.remainder(moved, 2)


def det(a: Tensor) -> Tensor:
    """Return the determinant."""
    packed, pivots, _ = lu_packed(a)
    return diagonal(packed).prod(-1) * _odd_swaps(pivots).to(a.dtype)


def det_with_factors(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the determinant, and what its gradient would need."""
    packed, pivots, _ = lu_packed(a)
    return diagonal(packed).prod(-1) * _odd_swaps(pivots).to(a.dtype), packed, pivots


def slogdet_with_factors(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return sign and logarithm of the determinant, and what their gradient would need."""
    packed, pivots, _ = lu_packed(a)
    pivotal = diagonal(packed)
    sign = pivotal.sgn().prod(-1) * _odd_swaps(pivots).to(a.dtype)
    return sign, pivotal.abs().log().sum(-1), packed, pivots


def slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return sign and logarithm of the determinant."""
    return slogdet_with_factors(a)[:2]


def logdet(a: Tensor) -> Tensor:
    """Return the logarithm of the determinant; a negative one has none."""
    sign, size = slogdet(a)
    return sign.log() + size


def solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """Return X with A X = B, and where A turned out to be singular."""
    return solve(a, b, left=left), _singular(lu_packed(a)[0])


def solve_with_factors(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """Return X with A X = B, and what its gradient would need."""
    packed, pivots, _ = lu_packed(a)
    return solve(a, b, left=left), packed, pivots, _singular(packed)


def lu_factor(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """Return packed factors and pivots."""
    return lu_packed(a)[:2]


def lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return packed factors, pivots, and where the matrix turned out to be singular."""
    packed, pivots, _ = lu_packed(a)
    return packed, pivots, _singular(packed)


def _order_of(pivots: Tensor, rows: Any) -> Tensor:
    """Return the order of rows that a sequence of LAPACK's swaps amounts to."""
    batch = pivots.shape[:-1]

    def step(k: Tensor, order: Tensor, pivots: Tensor) -> list[Tensor]:
        places = torch.arange(order.shape[-1])
        other = pivots.index_select(-1, k.reshape(1)).to(torch.int64) - 1
        return [order.gather(-1, torch.where(places == k, other, torch.where(places == other, k, places))), pivots]

    return repeat(pivots.shape[-1], [torch.arange(rows).expand(*batch, rows).clone(), pivots.clone()], step)[0]


def lu_unpack(data: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Tensor, ...]:
    """Return P, L and U from packed factors."""
    rows, _columns, short = data.shape[-2], data.shape[-1], _smaller(data)
    order = _order_of(pivots, rows)
    p = (order.unsqueeze(-2) == torch.arange(rows).unsqueeze(-1)).to(data.dtype)
    lower = data.narrow(-1, 0, short).tril(-1) + torch.eye(rows, short, dtype=data.dtype)
    nothing = torch.zeros(0, dtype=data.dtype)
    return (p if unpack_pivots else nothing, *((lower, data.narrow(-2, 0, short).triu()) if unpack_data else (nothing, nothing)))


def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """Return P, L and U."""
    packed, pivots, _ = lu_packed(a)
    return lu_unpack(packed, pivots)


def lu_solve(factors: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return X with A X = B from A's packed factors."""
    if not left:
        return lu_solve(factors, pivots, b.mH, adjoint=not adjoint).mH
    order = _order_of(pivots, factors.shape[-2])
    if not adjoint:
        return lu_apply(factors, order, b)
    y = solve_triangular(factors.mH, b, upper=False)
    y = solve_triangular(factors.mH, y, upper=True, unitriangular=True)
    back = order.argsort(-1).expand(*y.shape[:-2], order.shape[-1])
    return y.gather(-2, back.unsqueeze(-1).expand_as(y))


def cholesky(a: Tensor, *, upper: bool = False) -> Tensor:
    """Return the triangular root; NaN where the matrix is not positive definite."""
    a = a.mH if upper else a

    def step(k: Tensor, rest: Tensor, root: Tensor) -> list[Tensor]:
        places = torch.arange(rest.shape[-1])
        here = torch.where((places >= k).unsqueeze(-1), column(rest, k), torch.zeros((), dtype=rest.dtype))
        line = here / column(row(rest, k), k).sqrt()
        return [rest - line * line.mH, torch.where(places == k, line, root)]

    root = repeat(a.shape[-1], [a.clone(), torch.zeros_like(a)], step)[1]
    return root.mH if upper else root


def cholesky_old(a: Tensor, upper: bool = False) -> Tensor:
    """Return torch.cholesky, which reads the other triangle when `upper`."""
    return cholesky(a, upper=upper)


def cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """Return the triangular root, and where the matrix turned out not to be positive definite."""
    root = cholesky(a, upper=upper)
    return root, _first(diagonal(root).isnan())


def cholesky_solve(b: Tensor, root: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = B from A's triangular root."""
    lower = root.mH if upper else root
    return solve_triangular(lower.mH, solve_triangular(lower, b, upper=False), upper=True)


def cholesky_inverse(root: Tensor, upper: bool = False) -> Tensor:
    """Return A's inverse from its triangular root."""
    return cholesky_solve(torch.eye(root.shape[-1], dtype=root.dtype).expand_as(root), root, upper)


def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Return X with A X = B, and A, both broadcast."""
    turned = a.mT if transpose else a
    x = solve_triangular(turned, b, upper=upper != transpose, unitriangular=unitriangular)
    return x, a.expand(*x.shape[:-2], *a.shape[-2:]).clone()


def tensorinv(a: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor read as a matrix over its first `ind` axes."""
    rows, columns = a.shape[:ind], a.shape[ind:]
    return inverse(a.reshape(math.prod(rows), math.prod(columns))).reshape(*columns, *rows)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.linalg_inv.default: inverse,
    aten.inverse.default: inverse,
    aten.linalg_tensorinv.default: tensorinv,
    aten.linalg_inv_ex.default: inv_ex,
    aten.linalg_solve.default: solve,
    aten.linalg_solve_ex.default: solve_ex,
    aten._linalg_solve_ex.default: solve_with_factors,
    aten.linalg_solve_triangular.default: solve_triangular,
    aten.triangular_solve.default: triangular_solve,
    aten.linalg_det.default: det,
    aten.det.default: det,
    aten._linalg_det.default: det_with_factors,
    aten.linalg_slogdet.default: slogdet,
    aten.slogdet.default: slogdet,
    aten.logdet.default: logdet,
    aten._linalg_slogdet.default: slogdet_with_factors,
    aten.linalg_lu_factor.default: lu_factor,
    aten.linalg_lu_factor_ex.default: lu_factor_ex,
    aten.linalg_lu.default: lu,
    aten.lu_unpack.default: lu_unpack,
    aten.linalg_lu_solve.default: lu_solve,
    aten.linalg_cholesky.default: cholesky,
    aten.linalg_cholesky_ex.default: cholesky_ex,
    aten.cholesky.default: cholesky_old,
    aten.cholesky_solve.default: cholesky_solve,
    aten.cholesky_inverse.default: cholesky_inverse,
}
