"""Orthogonal factorisations: QR by Householder reflections (LAPACK's signs), eigh and SVD by Jacobi rotations, pinv.

A Jacobi step rotates n/2 disjoint pairs at once (the pairings of a round-robin tournament), so a sweep is n - 1 steps.
The rotations run in float64, and ten sweeps reach its rounding error: 1e-14 of the largest value, float32's last place where
that is the dtype. Signs of singular and eigenvectors are free, and may differ from LAPACK's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.foreign.torch_shapes import statically_known_true
from torchferry.ops.decomposed.elimination import column, diagonal, row
from torchferry.ops.decomposed.loop import repeat

SWEEPS = 10
NOTHING = 1e-14  # of the largest singular value


def _real(x: Tensor) -> Tensor:
    return x.real if x.is_complex() else x


def _imaginary(x: Tensor) -> Tensor:
    return x.imag if x.is_complex() else torch.zeros_like(x)


def _square(x: Tensor) -> Tensor:
    """Return the squares of the sizes."""
    return _real(x) * _real(x) + _imaginary(x) * _imaginary(x) if x.is_complex() else x * x


def _length(x: Tensor) -> Tensor:
    """Return the root of the sum of squares, each of which may be too large or too small for the dtype."""
    largest = torch.maximum(_real(x).abs(), _imaginary(x).abs()).amax((-2, -1), keepdim=True)
    unit = torch.where(largest == 0, torch.ones_like(largest), largest)
    return _square(x / unit).sum((-2, -1), keepdim=True).sqrt() * unit


def _exact(a: Tensor) -> Tensor:
    return a.to(torch.complex128 if a.is_complex() else torch.float64)


def _reflections(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return R above the reflectors (LAPACK's geqrf), their weights tau, and Q in full."""
    rows, steps = a.shape[-2], torch.sym_min(a.shape[-2], a.shape[-1])
    q = torch.eye(rows, dtype=a.dtype).expand(*a.shape[:-2], rows, rows).clone()
    tau = torch.zeros(*a.shape[:-2], steps, dtype=a.dtype)

    def step(k: Tensor, m: Tensor, tau: Tensor, q: Tensor) -> list[Tensor]:
        places, across = torch.arange(m.shape[-2]).unsqueeze(-1), torch.arange(m.shape[-1])
        zero = torch.zeros((), dtype=m.dtype)
        x = torch.where(places >= k, column(m, k), zero)
        below = torch.where(places > k, x, zero)
        alpha = row(x, k)
        flat = (_length(below) == 0) & (_imaginary(alpha) == 0)
        norm = _length(x)
        beta = torch.where(_real(alpha) < 0, norm, -norm)
        safe = torch.where(flat, torch.ones_like(beta), beta)
        weight = torch.where(flat, zero, (beta - alpha) / safe)
        v = below / torch.where(flat, torch.ones_like(beta), alpha - beta)
        v = torch.where(places == k, torch.ones_like(v), v)
        m2 = m - weight.conj() * v * v.mH.matmul(m)
        m2 = torch.where((across == k) & (places > k), v, torch.where(across < k, m, m2))
        tau = torch.where(torch.arange(tau.shape[-1]) == k, weight.squeeze(-1), tau)
        return [m2, tau, q - weight * q.matmul(v) * v.mH]

    packed, tau, q = repeat(steps, [a.clone(), tau, q], step)
    return packed, tau, q


def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return Q and R."""
    packed, _, q = _reflections(a)
    if mode == "complete":
        return q, packed.triu()
    short = torch.sym_min(a.shape[-2], a.shape[-1])
    r = packed.narrow(-2, 0, short).triu()
    return (torch.zeros(0, dtype=a.dtype), r) if mode == "r" else (q.narrow(-1, 0, short), r)


def qr_old(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """Return torch.qr."""
    return qr(self, "reduced" if some else "complete")


def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return R above the reflectors, and their weights."""
    return _reflections(a)[:2]


def _reflected(packed: Tensor, tau: Tensor, onto: Tensor, *, adjoint: bool = False) -> Tensor:
    """Return the product of reflections, or its adjoint, times a matrix: one after the other, as LAPACK applies them."""
    count = tau.shape[-1]

    def step(k: Tensor, x: Tensor, packed: Tensor, tau: Tensor) -> list[Tensor]:
        here = k if adjoint else count - 1 - k
        places, weight = torch.arange(packed.shape[-2]).unsqueeze(-1), column(tau.unsqueeze(-2), here)
        zero = torch.zeros((), dtype=x.dtype)
        v = torch.where(places > here, column(packed, here), zero)
        v = torch.where(places == here, torch.ones_like(v), v)
        along = v.mH.matmul(torch.where(places >= here, x, zero))
        moved = v * ((weight.conj() if adjoint else weight) * along)
        return [torch.where(places >= here, x - moved, x), packed, tau]  # rows above are left alone, infinite or not

    return repeat(count, [onto.clone(), packed.clone(), tau.clone()], step)[0]


def householder_product(packed: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of the product of reflections."""
    return _reflected(packed, tau, torch.eye(*packed.shape[-2:], dtype=packed.dtype).expand_as(packed))


def ormqr(packed: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Return the product of reflections times a matrix, or a matrix times it."""
    if left:
        return _reflected(packed, tau, other, adjoint=transpose)
    return _reflected(packed, tau, other.mH, adjoint=not transpose).mH


def _rotate(gram: Tensor, k: Tensor) -> Tensor:
    """Return the rotations that make a Hermitian matrix zero at all pairs of round k."""
    gram = gram / 2 + gram.mH / 2  # where only rounding errors are left, both halves of a pair must still turn alike
    places, rounds = torch.arange(gram.shape[-1]), gram.shape[-1] - 1
    partner = torch.remainder(2 * k - places, rounds)
    partner = torch.where(places == rounds, torch.remainder(k, rounds), torch.where(partner == places, rounds, partner))
    pairs = (places.unsqueeze(-1) == partner).mT  # pairs[i, j]: j is i's partner
    own = _real(diagonal(gram))
    other = own.gather(-1, partner.expand_as(own))
    across = torch.where(pairs, gram, torch.zeros((), dtype=gram.dtype)).sum(-1)
    first = places < partner
    apart = torch.where(first, other - own, own - other)
    size = across.abs()
    still = size == 0
    safe = torch.where(still, torch.ones_like(size), size)
    ratio = apart / (2 * safe)
    tangent = torch.where(ratio < 0, -1.0, 1.0).to(ratio.dtype) / (ratio.abs() + (1 + ratio * ratio).sqrt())
    cosine = torch.where(still, torch.ones_like(tangent), 1 / (1 + tangent * tangent).sqrt())
    sine = torch.where(first, tangent, -tangent) * cosine * (across / safe)  # nothing where nothing is across
    return torch.diag_embed(cosine).to(gram.dtype) + torch.where(pairs, sine.unsqueeze(-1), torch.zeros((), dtype=gram.dtype))


def _even(size: Any) -> Any:
    """Return how many columns make the number of players even, and at least two."""
    return size % 2 if not isinstance(size, int) or size > 1 else 2 - size


def eigh(a: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Return eigenvalues in rising order, and eigenvectors as columns."""
    size, dtype, a = a.shape[-1], a.dtype, _exact(a)
    lower = a if UPLO == "L" else a.mH
    symmetric = lower.tril(-1) + lower.tril(-1).mH + torch.diag_embed(_real(diagonal(lower)))
    extra = _even(size)
    padded = torch.nn.functional.pad(symmetric, (0, extra, 0, extra))
    players = padded.shape[-1]
    vectors = torch.eye(players, dtype=a.dtype).expand_as(padded).clone()

    def step(k: Tensor, m: Tensor, v: Tensor) -> list[Tensor]:
        turn = _rotate(m, k)
        return [turn.mH.matmul(m).matmul(turn), v.matmul(turn)]

    m, v = repeat(SWEEPS * (players - 1), [padded.clone(), vectors], step)
    values = _real(diagonal(m)).narrow(-1, 0, size)
    ordered, order = torch.topk(values, size, -1, False, True)
    v = v.narrow(-1, 0, size).narrow(-2, 0, size)
    return ordered.to(dtype.to_real()), v.gather(-1, order.unsqueeze(-2).expand_as(v)).to(dtype)


def eigvalsh(a: Tensor, UPLO: str = "L") -> Tensor:
    """Return eigenvalues in rising order."""
    return eigh(a, UPLO)[0]


def linalg_eigh(a: Tensor, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors."""
    return eigh(a, UPLO)


def svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """Return U, S and V transposed, the singular values falling."""
    turned = statically_known_true(a.shape[-2] < a.shape[-1])  # there are fewer pairs among the rows
    u, values, v = _rotated(a.mH if turned else a)
    if full_matrices:
        u, v = _completed(u), _completed(v)
    u, v = (v, u) if turned else (u, v)
    return u, values, v.mH


def _completed(q: Tensor) -> Tensor:
    """Return orthogonal columns with others beside them, until there are as many as rows."""
    rows, columns = q.shape[-2:]
    return torch.cat([q, qr(q, "complete")[0].narrow(-1, columns, rows - columns)], -1)


def _rotated(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V: the columns are rotated until they are orthogonal."""
    size, dtype, a = a.shape[-1], a.dtype, _exact(a)
    short = torch.sym_min(a.shape[-2], size)
    padded = torch.nn.functional.pad(a, (0, _even(size)))
    players = padded.shape[-1]
    vectors = torch.eye(players, dtype=a.dtype).expand(*a.shape[:-2], players, players).clone()

    def step(k: Tensor, m: Tensor, v: Tensor) -> list[Tensor]:
        turn = _rotate(m.mH.matmul(m), k)
        return [m.matmul(turn), v.matmul(turn)]

    m, v = repeat(SWEEPS * (players - 1), [padded.clone(), vectors], step)
    m, v = m.narrow(-1, 0, size), v.narrow(-1, 0, size).narrow(-2, 0, size)
    values, order = torch.topk(_square(m).sum(-2).sqrt(), short, -1, True, True)
    m, v = (t.gather(-1, order.unsqueeze(-2).expand(*t.shape[:-1], short)) for t in (m, v))
    lost = values <= NOTHING * aten.slice.Tensor(values, -1, 0, 1)  # of such columns only rounding errors are left
    u = torch.where(lost.unsqueeze(-2), 0.0, m / torch.where(lost, torch.ones_like(values), values).unsqueeze(-2))
    u = torch.where(lost.unsqueeze(-2), qr(u)[0], u)  # any directions will do that are orthogonal to the others
    return u.to(dtype), values.to(dtype.to_real()), v.to(dtype)


def linalg_svd(a: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """Return torch.linalg.svd."""
    return svd(a, full_matrices)


def svd_old(self: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, ...]:
    """Return torch.svd, whose V is not transposed."""
    u, s, vh = svd(self, not some)
    return u, s, vh.mH


def svdvals(a: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, falling."""
    return svd(a)[1]


def pinv(a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Tensor:
    """Return the pseudo-inverse: singular values below the tolerance count as zero."""
    if a.numel() == 0:
        return a.mH.clone()
    if hermitian:
        values, vectors = eigh(a)
        u, s, vh = vectors * torch.where(values < 0, -1.0, 1.0).to(a.dtype).unsqueeze(-2), values.abs(), vectors.mH
    else:
        u, s, vh = svd(a)
    largest = s.amax(-1, keepdim=True)
    if rtol is None:
        largest_side = torch.scalar_tensor(torch.sym_max(a.shape[-2], a.shape[-1]), dtype=s.dtype)
        rtol = largest_side * torch.finfo(a.dtype).eps if atol is None else torch.zeros((), dtype=s.dtype)
    if atol is None:
        atol = torch.zeros((), dtype=s.dtype)
    least = torch.maximum(atol.to(s.dtype).unsqueeze(-1), rtol.to(s.dtype).unsqueeze(-1) * largest)
    inverted = torch.where(s > least, 1 / s, torch.zeros_like(s))
    kept = inverted.unsqueeze(-1) != 0  # what is not finite has no singular vectors either, and torch gives zeros for it
    return torch.where(kept, vh, 0.0).mH.matmul(torch.where(kept, inverted.unsqueeze(-1) * u.mH, 0.0))


def pinv_float(a: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """Return the pseudo-inverse for tolerances given as numbers."""
    tolerances = {n: torch.full((), v, dtype=a.dtype.to_real()) for n, v in (("atol", atol), ("rtol", rtol)) if v is not None}
    return pinv(a, **tolerances, hermitian=hermitian)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.linalg_qr.default: qr,
    aten.qr.default: qr_old,
    aten.geqrf.default: geqrf,
    aten.linalg_householder_product.default: householder_product,
    aten.orgqr.default: householder_product,
    aten.ormqr.default: ormqr,
    aten._linalg_eigh.default: eigh,
    aten.linalg_eigh.default: linalg_eigh,
    aten.linalg_eigvalsh.default: eigvalsh,
    aten._linalg_svd.default: svd,
    aten.linalg_svd.default: linalg_svd,
    aten.svd.default: svd_old,
    aten.linalg_svdvals.default: svdvals,
    aten.linalg_pinv.atol_rtol_tensor: pinv,
    aten.linalg_pinv.atol_rtol_float: pinv_float,
}
