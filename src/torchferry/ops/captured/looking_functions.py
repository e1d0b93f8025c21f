"""Functions of torch that look at values, where no value is known during a capture: spelled so that they need not look.

What they look for are checks (is a variance negative, do the weights sum to nothing) or numbers that the graph can carry.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from torchferry.foreign.torch_shapes import example_of
from torchferry.foreign.torch_tensors import pad_sequence
from torchferry.foreign.torch_tracing import reference_linalg
from torchferry.ops.captured import spectral
from torchferry.ops.captured.alignment import ctc_loss
from torchferry.ops.captured.short_time import istft
from torchferry.ops.one_hot import one_hot


class LookingFunctions(TorchFunctionMode):
    """Takes the place of a few functions of torch."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # inside torch.cond and its like dynamo reads this: keep it short
            return func(*args, **kwargs)
        spelled = _SPELLED.get(func)
        result = NotImplemented if spelled is None else spelled(*args, **kwargs)
        return func(*args, **kwargs) if result is NotImplemented else result


def patch(module: Any) -> LookingFunctions:
    """Return a context in which these functions look at no values."""
    return LookingFunctions()


def _cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """As torch computes it, without the checks of the weights' signs and sum."""
    x = input if input.dim() >= 2 else input.reshape(1, -1)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        total: Any = torch.scalar_tensor(x.shape[1], dtype=torch.int64)
        mean = x.sum(1) / total
    else:
        total = weights.sum()
        mean = (x * weights).sum(1) / total
    norm = total - correction
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum() / total
    apart = x - mean.unsqueeze(1)
    other = apart if weights is None else apart * weights
    return (torch.mm(apart, other.t().conj()) / norm.clamp_min(0)).squeeze()


def _corrcoef(input: Tensor) -> Tensor:
    c = _cov(input)
    if c.dim() == 0:
        return c / c
    deviation = (c.diagonal().real if c.is_complex() else c.diagonal()).sqrt()
    c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return torch.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.is_complex() else c.clamp(-1, 1)


def _combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The places are known where the length is; where it moves, they are those of a triangle's true elements."""
    size = input.shape[0]
    if r == 0:
        return input.new_zeros(0)
    if isinstance(size, int):
        pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        places = torch.tensor(list(pick(range(size), r)), dtype=torch.int64).reshape(-1, r)
        return input.index_select(0, places.reshape(-1)).reshape(-1, r)
    grid = torch.meshgrid(*[torch.arange(size)] * r, indexing="ij")
    kept = torch.ones_like(grid[0], dtype=torch.bool)
    for a, b in itertools.pairwise(grid):
        kept = kept & (a <= b if with_replacement else a < b)
    return input.index_select(0, kept.nonzero().reshape(-1)).reshape(-1, r)


def _narrow(input: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    if not isinstance(start, Tensor):
        return NotImplemented
    size = input.shape[dim]
    return input.index_select(dim, torch.where(start < 0, start + size, start) + torch.arange(length))


def _gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """As torch computes it, without the check of the variance's sign."""
    if not isinstance(var, Tensor):
        return NotImplemented
    if var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0.0)
    return {"mean": torch.mean, "sum": torch.sum}.get(reduction, torch.clone)(loss)


def _linear_cross_entropy(*args: Any, options: Any = None, **kwargs: Any) -> Tensor:
    """In one piece: `options` cut the batch into chunks, to save memory in training."""
    return functional.linear_cross_entropy(*args, **kwargs) if options is not None else NotImplemented


def _lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """By QR where the driver takes A to be of full rank, otherwise by A's pseudo-inverse; of residuals, those of full rank."""
    rows, columns = A.shape[-2], A.shape[-1]
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    b = B.unsqueeze(-1) if vector else B
    rank, values = torch.zeros(0, dtype=torch.int64), A.new_zeros(0)
    if driver == "gels":
        x = _of_full_rank(A, b)
    else:
        rcond = rcond if rcond is not None else max(rows, columns) * torch.finfo(A.dtype).eps
        found = torch.linalg.svdvals(A)
        x = torch.linalg.pinv(A, rtol=rcond) @ b
        rank = (found > rcond * found.amax(-1, keepdim=True)).sum(-1)
        values = found if driver in ("gelsd", "gelss") else values
    # as the example has them, which is no condition: few models read the residuals, and these are verified
    overdetermined = driver in ("gels", "gelsd", "gelss") and example_of(rows) > example_of(columns)
    residuals = (A @ x - b).abs().square().sum(-2) if overdetermined else A.new_zeros(0)
    return torch.return_types.linalg_lstsq((x.squeeze(-1) if vector else x, residuals, rank, values))


def _of_full_rank(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[-2] >= a.shape[-1]:
        q, r = torch.linalg.qr(a)
        return torch.linalg.solve_triangular(r, q.mH @ b, upper=True)
    q, r = torch.linalg.qr(a.mH)  # the shortest of the many solutions
    return q @ torch.linalg.solve_triangular(r.mH, b, upper=False)


def _pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Padded to the longest, whichever that is: torch would settle it by the example."""
    lengths = [s.shape[0] for s in sequences]
    if all(isinstance(n, int) for n in lengths):
        return NotImplemented
    longest = functools.reduce(torch.sym_max, lengths)
    missing = [(0, longest - n) if padding_side == "right" else (longest - n, 0) for n in lengths]
    padded = [functional.pad(s, (0, 0) * (s.dim() - 1) + m, value=padding_value) for s, m in zip(sequences, missing, strict=True)]
    return torch.stack(padded, 0 if batch_first else 1)


def _take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As torch computes it, indices beyond the end counted round, with the sizes that both are spread to left symbolic."""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % input.dim()
    one, other = ((*t.shape[:axis], 1, *t.shape[axis + 1 :]) for t in (input, indices))
    wide = torch.broadcast_shapes(one, other)
    spread = [t.expand(*wide[:axis], t.shape[axis], *wide[axis + 1 :]) for t in (input, indices)]
    return spread[0].gather(axis, torch.remainder(spread[1], input.shape[axis]))


def _kron(input: Tensor, other: Tensor) -> Tensor:
    """Every element of one times the whole other: each axis is a pair of axes, folded into one at the end."""
    rank = max(input.dim(), other.dim())
    one, two = (t.reshape(*[1] * (rank - t.dim()), *t.shape) for t in (input, other))
    outer = one.reshape(*(n for size in one.shape for n in (size, 1)))
    pairs = outer * two.reshape(*(n for size in two.shape for n in (1, size)))
    return pairs.reshape(*(n * m for n, m in zip(one.shape, two.shape, strict=True)))


def _one_hot(tensor: Tensor, num_classes: Any = -1) -> Tensor:
    """As many classes as the largest one asks for, which only the data know; a given number is torch's own matter."""
    if not (isinstance(num_classes, int) and num_classes == -1):
        return NotImplemented
    return one_hot(tensor, tensor.max().item() + 1)


def _multi_dot(tensors: Any) -> Tensor:
    """From left to right, whatever the sizes are: torch chooses the cheapest order by them."""
    return functools.reduce(torch.matmul, tensors)


def _norm(reference: Callable[..., Tensor]) -> Callable[..., Any]:
    """By torch's reference in Python: what is in C++ fixes the sizes of all but the commonest norms."""

    def norm(A: Tensor, ord: Any = None, *rest: Any, **options: Any) -> Any:
        moves = any(isinstance(size, torch.SymInt) for size in A.shape)
        return reference(A, ord, *rest, **options) if ord is not None and moves else NotImplemented

    return norm


def _deep_copy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    return memo.setdefault(id(tensor), tensor.clone())


_SPELLED: dict[Any, Callable[..., Any]] = {
    pad_sequence: _pad_sequence,
    Tensor.__deepcopy__: _deep_copy,  # a stand-in has no memory to copy
    torch.cov: _cov,
    Tensor.cov: _cov,
    torch.corrcoef: _corrcoef,
    Tensor.corrcoef: _corrcoef,
    torch.combinations: _combinations,
    torch.kron: _kron,
    Tensor.kron: _kron,
    torch.take_along_dim: _take_along_dim,
    Tensor.take_along_dim: _take_along_dim,
    torch.narrow: _narrow,
    Tensor.narrow: _narrow,
    torch.linalg.lstsq: _lstsq,
    torch.linalg.multi_dot: _multi_dot,
    torch.linalg.matrix_norm: _norm(reference_linalg.matrix_norm),
    torch.linalg.norm: _norm(reference_linalg.norm),
    Tensor.data.__get__: Tensor.detach,  # type: ignore[attr-defined]  # which torch records; `.data` would be a constant
    functional.gaussian_nll_loss: _gaussian_nll_loss,
    functional.ctc_loss: ctc_loss,
    functional.one_hot: _one_hot,
    **spectral.SPELLED,
    torch.istft: istft,
    Tensor.istft: istft,
    getattr(functional, "linear_cross_entropy", None): _linear_cross_entropy,  # came with torch 2.13
}
