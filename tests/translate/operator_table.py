"""The operators that torch.onnx lacks or gets wrong, as a table: what to call, on what, and in which dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

F, S, L = torch.nn.functional, torch.special, torch.linalg
DTYPES = {"f": torch.float32, "d": torch.float64, "h": torch.float16, "l": torch.int64, "i": torch.int32, "b": torch.bool}
ROWS = {0: "b", 1: "n"}
SQUARE = {0: "b", 1: "n", 2: "n"}
Args = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Row:
    """`call` gives all results to be compared; `make(batch, length, dtype)` its arguments; `axes` say which of them move."""

    call: Callable[..., Any]
    make: Callable[[int, int, torch.dtype], Args]
    axes: tuple[dict[int, str], ...] = (ROWS,)
    dtypes: str = "fd"
    sizes: tuple[tuple[int, int], ...] = ((2, 5), (3, 9), (1, 1), (0, 4))  # the first is the example


def numbers(*shape: int, dtype: torch.dtype, spread: float = 3.0) -> torch.Tensor:
    """Return numbers with repetitions, half of them whole, of either sign."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * spread
    x = torch.where(torch.arange(x.numel()).reshape(x.shape) % 2 == 0, x.round(), x)
    return x > 0 if dtype == torch.bool else x.to(dtype)


def plane(b: int, n: int, dtype: torch.dtype) -> Args:
    return (numbers(b, n, dtype=dtype),)


def positive(b: int, n: int, dtype: torch.dtype) -> Args:
    return (numbers(b, n, dtype=dtype).abs() + 0.25,)


def fractions(b: int, n: int, dtype: torch.dtype) -> Args:
    return (numbers(b, n, dtype=torch.float64).sin().mul(0.99).to(dtype),)


def with_nan(b: int, n: int, dtype: torch.dtype) -> Args:
    x = numbers(b, n, dtype=dtype)
    return (torch.where(x > 2, torch.nan, x) if x.is_floating_point() else x,)


def pair(b: int, n: int, dtype: torch.dtype) -> Args:
    return numbers(b, n, dtype=dtype), numbers(b, n, dtype=dtype).flip(1)


def pair_without_zero(b: int, n: int, dtype: torch.dtype) -> Args:
    tenths = numbers(b, n, dtype=dtype) / 10
    return numbers(b, n, dtype=dtype) / 5, torch.where(tenths == 0, 0.7, tenths)


def with_infinity(b: int, n: int, dtype: torch.dtype) -> Args:
    x = numbers(b, n, dtype=dtype)
    return (torch.where(x > 2, -torch.inf, x) if x.is_floating_point() else x,)


def sorted_and_values(b: int, n: int, dtype: torch.dtype) -> Args:
    return numbers(b, n, dtype=dtype).sort()[0], numbers(b, n + 2, dtype=dtype)


def written(b: int, n: int, dtype: torch.dtype) -> Args:
    """A target, places in its rows, and what goes there."""
    places = torch.randint(0, max(b, 1), (b + 1, n), generator=torch.Generator().manual_seed(n))
    return numbers(b, n, dtype=dtype), places, numbers(b + 1, n, dtype=dtype)


WRITTEN = (ROWS, {0: "m", 1: "n"}, {0: "m", 1: "n"})


def definite(b: int, n: int, dtype: torch.dtype) -> Args:
    a = torch.randn(b, n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    return ((a @ a.mT + n * torch.eye(n)).to(dtype),)


def tall(b: int, n: int, dtype: torch.dtype) -> Args:
    return (torch.randn(b, n + 2, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64).to(dtype),)


TALL = ({0: "b", 1: "m", 2: "n"},)


def system(b: int, n: int, dtype: torch.dtype) -> Args:
    return *definite(b, n, dtype), numbers(b, n, 2, dtype=dtype)


SYSTEM = (SQUARE, {0: "b", 1: "n"})
SIZES = ((2, 5), (3, 9), (1, 1))


def triangle(a: torch.Tensor) -> torch.Tensor:
    return a.tril() + torch.eye(a.shape[-1], dtype=a.dtype)


def rebuilt(a: torch.Tensor) -> Args:
    """The matrix from its singular values, and these: vectors are free in their signs."""
    u, s, vh = L.svd(a, full_matrices=False)
    return (u * s.unsqueeze(-2)) @ vh, s


def diagonalised(a: torch.Tensor) -> Args:
    values, vectors = L.eigh(a)
    return (vectors * values.unsqueeze(-2)) @ vectors.mT, values


def complex_of(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, x.flip(-1) * 0.5 + 0.25)


def hermitian(a: torch.Tensor) -> torch.Tensor:
    """A definite matrix that is not real."""
    turned = a.tril(-1) * 0.3
    return torch.complex(a, turned - turned.mT)


def complex_factors(a: torch.Tensor) -> Args:
    h, plain = hermitian(a), complex_of(a)
    values, vectors = L.eigh(h)
    whole = (vectors * values.unsqueeze(-2)) @ vectors.mH
    given = L.cholesky(h), L.lu_solve(*L.lu_factor(plain), h, adjoint=True), *L.qr(plain), whole
    return *(torch.view_as_real(m) for m in given), values, L.svdvals(plain)


def complex_movements(x: torch.Tensor) -> Args:
    z = complex_of(x)
    places = torch.zeros_like(x, dtype=torch.int64)
    first = torch.stack(z.movedim(-1, 0)[:1].unbind(0))
    moved = (
        z.scatter(0, places, z + 1),
        z.masked_select(x > 0),
        z.new_full((2,), 1 + 2j),
        first,
        z.index_fill(0, places[:1, 0], 3j),
    )
    made = torch.zeros(x.shape[0], dtype=z.dtype), torch.ones(2, dtype=z.dtype) * 1j, torch.full_like(z, 2 - 1j)
    return tuple(torch.view_as_real(m.resolve_conj()) for m in (*moved, *made))


def complex_values(x: torch.Tensor) -> Args:
    z = complex_of(x)
    given = torch.sigmoid(z), z.logsumexp(-1), z.log2(), torch.sinc(z), z.sgn(), z.mean(-1)
    return *(torch.view_as_real(m.resolve_conj()) for m in given), z.var(-1), z.std(0, correction=0), z.isfinite()


def images(*inner: int) -> Callable[[int, int, torch.dtype], Args]:
    return lambda b, n, dtype: (numbers(b, 2, n + 1, *inner, dtype=dtype),)


IMAGES = ({0: "b", 2: "h"},)
FACTORS = Row(complex_factors, definite, (SQUARE,), sizes=SIZES)
TABLE: dict[str, Row] = {
    "cumprod": Row(lambda x: (x.cumprod(0), x.cumprod(-1)), plane, dtypes="fdhlib"),
    "cummax": Row(lambda x: (*x.cummax(0), *x.cummax(-1)), with_nan, dtypes="fdhlib"),
    "cummin": Row(lambda x: (*x.cummin(0), *x.cummin(-1)), with_nan, dtypes="fdhlib"),
    "logcumsumexp": Row(lambda x: x.logcumsumexp(-1), plane, dtypes="fdh"),
    "median": Row(lambda x: (x.median(), x.median(-1)[0], x.median(0, keepdim=True)[0]), with_nan, dtypes="fdhli", sizes=SIZES),
    "nanmedian": Row(lambda x: (x.nanmedian(), x.nanmedian(-1)[0]), with_nan, dtypes="fdhli", sizes=SIZES),
    "kthvalue": Row(lambda x: (x.kthvalue(1)[0], x.kthvalue(1, 0, True)[0]), plane, dtypes="fdhli", sizes=SIZES),
    "mode": Row(lambda x: (*x.mode(-1), *x.mode(0, keepdim=True)), plane, dtypes="fdlib", sizes=SIZES),
    "stable sort": Row(
        lambda x: (*x.sort(stable=True, dim=-1), *x.sort(stable=True, dim=0, descending=True), x.argsort(stable=True)),
        plane,
        dtypes="fdhlib",
    ),
    "searchsorted": Row(
        lambda s, v: (
            torch.searchsorted(s, v),
            torch.searchsorted(s, v, right=True, out_int32=True),
            torch.bucketize(v, s[0], right=True),
            torch.bucketize(v, s[0]),
        ),
        sorted_and_values,
        (ROWS, {0: "b", 1: "m"}),
        "fdli",
        SIZES,
    ),
    "unique_consecutive": Row(
        lambda x: torch.unique_consecutive(x.flatten(), return_inverse=True, return_counts=True),
        plane,
        dtypes="fdlib",
        sizes=SIZES,
    ),
    "masked_select": Row(lambda x, y: (x.masked_select(y > 0), x[y > 0]), pair, (ROWS, ROWS), "fdhlib"),
    "put": Row(lambda x, i, s: (x.put(i, s), x.put(torch.zeros_like(i), s, accumulate=True)), written, WRITTEN, "fdli", SIZES),
    "index_reduce": Row(
        lambda x, i, s: tuple(
            x.index_reduce(0, i[:, 0], s, r, include_self=k) for r in ("mean", "amax", "prod") for k in (True, False)
        ),
        written,
        WRITTEN,
        "fdl",
        SIZES,
    ),
    "scatter_reduce": Row(
        lambda x, i, s: tuple(
            x.scatter_reduce(0, i, s, r, include_self=k) for r in ("sum", "mean", "amax", "amin", "prod") for k in (True, False)
        ),
        written,
        WRITTEN,
        "fdhli",
        SIZES,
    ),
    "segment_reduce": Row(
        lambda x: tuple(
            torch.segment_reduce(x, r, lengths=torch.tensor([1, 0, 1])) for r in ("sum", "mean", "max", "min", "prod")
        ),
        lambda b, n, dtype: (numbers(2, n, dtype=dtype),),
        ({1: "n"},),
        sizes=SIZES,
    ),
    "cdist": Row(
        lambda x: tuple(torch.cdist(x, x[:, :2] * 0.5, p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)),
        lambda b, n, dtype: (numbers(b, n + 1, 3, dtype=dtype),),
        sizes=SIZES,
    ),
    "pdist": Row(
        lambda x: tuple(F.pdist(x, p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)),
        lambda b, n, dtype: (numbers(n + 1, 3, dtype=dtype),),
        ({0: "n"},),
        sizes=SIZES,
    ),
    "cov": Row(
        lambda x: (x.cov(), x.corrcoef()), lambda b, n, dtype: (numbers(3, n + 2, dtype=dtype),), ({1: "n"},), sizes=SIZES
    ),
    "combinations": Row(
        lambda x: (torch.combinations(x[0], 2), torch.combinations(x[0], 2, with_replacement=True)),
        lambda b, n, dtype: (numbers(1, 4, dtype=dtype),),
        ({},),
        "fdl",
    ),
    "vander": Row(lambda x: (L.vander(x, N=4), L.vander(x[0], N=2)), plane, dtypes="fdl", sizes=SIZES),
    "histc": Row(lambda x: (torch.histc(x, 5, -2, 2), torch.histc(x, 4)), plane, sizes=SIZES),
    "inv": Row(lambda a: (L.inv(a), a.inverse()), definite, (SQUARE,), sizes=SIZES),
    "solve": Row(lambda a, b: (L.solve(a, b), L.solve(a, b.mT, left=False), L.solve(a, b[..., 0])), system, SYSTEM, sizes=SIZES),
    "triangular_solve": Row(
        lambda a, b: (
            L.solve_triangular(triangle(a), b, upper=False),
            torch.triangular_solve(b, triangle(a).mT, upper=True)[0],
            L.solve_triangular(triangle(a).mT, b.mT, upper=True, left=False),
        ),
        system,
        SYSTEM,
        sizes=SIZES,
    ),
    "cholesky": Row(
        lambda a, b: (
            L.cholesky(a),
            L.cholesky(a, upper=True),
            torch.cholesky_solve(b, L.cholesky(a)),
            torch.cholesky_inverse(L.cholesky(a)),
        ),
        system,
        SYSTEM,
        sizes=SIZES,
    ),
    "lu": Row(lambda a: (*L.lu(a), *L.lu_factor(a), L.lu_solve(*L.lu_factor(a), a)), definite, (SQUARE,), sizes=SIZES),
    "qr": Row(lambda a: (*L.qr(a), L.qr(a, "complete")[0], L.qr(a, "r")[1]), tall, TALL, sizes=SIZES),
    "svd": Row(lambda a: (*rebuilt(a), L.svdvals(a)), tall, TALL, sizes=SIZES),
    "svd of any shape": Row(lambda a: (*rebuilt(a), L.svdvals(a), L.pinv(a)), plane, sizes=((3, 5), (5, 3), (4, 4), (1, 6))),
    "eigh": Row(lambda a: (*diagonalised(a), L.eigvalsh(a)), definite, (SQUARE,), sizes=SIZES),
    "pinv": Row(lambda a: (L.pinv(a), a.pinverse()), tall, TALL, sizes=SIZES),
    "det": Row(lambda a: (L.det(a), *L.slogdet(a), a.logdet()), definite, (SQUARE,), sizes=SIZES),
    "complex movements": Row(complex_movements, plane, sizes=SIZES),
    "complex values": Row(complex_values, plane, ({0: "b"},), sizes=((2, 5), (3, 5))),
    "matrix_exp": Row(lambda a: torch.matrix_exp(a / 9), definite, (SQUARE,), sizes=SIZES),
    "lstsq": Row(lambda a: L.lstsq(a, a[..., :1]).solution, tall, TALL, sizes=SIZES),
    "lgamma": Row(lambda x: (x.lgamma(), x.mvlgamma(1)), positive, dtypes="fdh"),
    "digamma": Row(lambda x: (x.digamma(), S.polygamma(1, x), S.polygamma(3, x)), positive, dtypes="fd"),
    "erfinv": Row(lambda x: (x.erfinv(), S.ndtri(x.abs())), fractions, dtypes="fd"),
    "erfcx": Row(lambda x: (S.erfcx(x), x.erfc(), S.log_ndtr(x), S.ndtr(x)), plane, dtypes="fd"),
    "i0": Row(lambda x: (S.i0(x), S.i0e(x), S.i1(x), S.i1e(x)), plane, dtypes="fd"),
    "bessel": Row(lambda x: (S.bessel_j0(x), S.bessel_j1(x), S.bessel_y0(x), S.bessel_y1(x)), positive, dtypes="fd"),
    "modified bessel": Row(
        lambda x: (S.modified_bessel_i0(x), S.modified_bessel_k0(x), S.modified_bessel_k1(x)), positive, dtypes="fd"
    ),
    "igamma": Row(lambda x: (torch.igamma(x, x.flip(1)), torch.igammac(x, x.flip(1))), positive, dtypes="fd"),
    "zeta": Row(lambda x: (S.zeta(x + 1, x), S.zeta(3.0, x)), positive, dtypes="fd"),
    "atan2": Row(lambda x, y: (torch.atan2(x, y), torch.atan2(x, y * 0), torch.atan2(x * -0.0, y)), pair, (ROWS, ROWS), "fdl"),
    "sign": Row(lambda x: (x.sign(), x.sgn()), with_nan, dtypes="fdhli"),
    "var_mean": Row(lambda x: (*torch.var_mean(x, -1), *torch.std_mean(x, (0, 1), correction=0)), plane, sizes=((2, 5), (3, 9))),
    "xlogy": Row(lambda x: (torch.xlogy(x, x.abs()), S.xlog1py(x, x.abs()), S.entr(x)), plane, dtypes="fdh"),
    "hypot": Row(torch.hypot, pair, (ROWS, ROWS), "fdh"),
    "frexp": Row(torch.frexp, plane, dtypes="fdh"),
    "fmin": Row(
        lambda x, y: (torch.fmin(x, y), torch.fmax(x, y)),
        lambda b, n, t: (*with_nan(b, n, t), *plane(b, n, t)),
        (ROWS, ROWS),
        "fdhlib",
    ),
    "nextafter": Row(torch.nextafter, pair, (ROWS, ROWS), "fd"),
    "floored division": Row(
        lambda x, y: (x.div(y, rounding_mode="floor"), x.div(0.3, rounding_mode="floor"), x // 0.1, x // -2.0, x // y),
        pair_without_zero,
        (ROWS, ROWS),
        "fd",
    ),
    "remainder": Row(
        lambda x, y: (x % y, -x % y, torch.remainder(x * 1e-6, -y), torch.remainder(x, 0.3), 7.5 % y),
        pair_without_zero,
        (ROWS, ROWS),
        "fd",
    ),
    "logaddexp": Row(
        lambda x, y: (torch.logaddexp(x * 50, y * 60), torch.logaddexp2(x * 50, y * 90), torch.signbit(x * 0)),
        pair,
        (ROWS, ROWS),
        "fd",
    ),
    "std": Row(
        lambda x: (
            *(x.std(), x.std(-1), x.std(0, unbiased=False), x.std((0, 1), keepdim=True, correction=2), (x * 300).std(-1)),
            *(*torch.std_mean(x, -1), *torch.std_mean(x), *torch.std_mean(x, (0, 1), keepdim=True, correction=0)),
        ),
        plane,
        dtypes="fdh",
        sizes=((3, 5), (2, 9), (4, 4)),
    ),
    "diagonal": Row(
        lambda x: (
            x.diagonal(),
            x.diagonal(2),
            x.diagonal(-1, 1, 0),
            torch.diag(x, -2),
            torch.diag(x[0]),
            torch.diagonal_copy(x, 1),
        ),
        with_infinity,
        dtypes="fdhlib",
        sizes=((3, 5), (6, 3), (4, 4), (1, 1)),
    ),
    "heaviside": Row(torch.heaviside, pair, (ROWS, ROWS), "fdhlib"),
    "adaptive average": Row(
        lambda x: (F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x, 1)), images(5), IMAGES, "fdh", SIZES
    ),
    "adaptive average 3d": Row(lambda x: F.adaptive_avg_pool3d(x, (3, 2, 1)), images(5, 4), IMAGES, "fd", SIZES),
    "adaptive maximum": Row(lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True), images(5), IMAGES, "fdh", SIZES),
    "adaptive maximum 3d": Row(
        lambda x: F.adaptive_max_pool3d(x, (3, 2, 1), return_indices=True), images(5, 4), IMAGES, "fd", SIZES
    ),
    "grid_sample 3d": Row(
        lambda x, g: (F.grid_sample(x, g, align_corners=True), F.grid_sample(x, g, mode="nearest", align_corners=False)),
        lambda b, n, t: (numbers(b, 2, 3, 4, 5, dtype=t), numbers(b, n, 2, 2, 3, dtype=torch.float64).sin().to(t)),
        ({0: "b"}, ROWS),
        "f",
        SIZES,
    ),
    "rrelu": Row(lambda x: F.rrelu(x, 0.1, 0.3), plane, dtypes="fdh"),
    "ctc_loss": Row(
        lambda x: F.ctc_loss(
            x.log_softmax(-1), torch.tensor([[1, 2], [2, 2]]), torch.tensor([5, 4]), torch.tensor([2, 1]), reduction="none"
        ),
        lambda b, n, t: (numbers(5, 2, 3, dtype=t),),
        ({},),
    ),
    "fft": Row(
        lambda x: tuple(
            torch.view_as_real(y.resolve_conj())
            for y in (torch.fft.fft(x, dim=0), torch.fft.rfft(x), torch.fft.fft2(x), torch.fft.fftn(x), torch.fft.ihfft(x))
        ),
        plane,
        sizes=SIZES,
    ),
    "inverse fft": Row(
        lambda x: (
            torch.fft.irfft(torch.fft.rfft(x), x.shape[1]),
            torch.fft.ifft(torch.complex(x, -x)).real,
            torch.fft.fftshift(torch.fft.fft2(x)).imag,
            torch.fft.irfftn(torch.fft.rfftn(x), x.shape),
        ),
        plane,
        sizes=SIZES,
    ),
}
