"""Draws that keep what holds of the example: rows of one length, sums of one, whole numbers, sorted rows, symmetric matrices.

A model may refuse what is drawn freely: a quaternion that is not of length one, a code that no table has. What holds of the
example to rounding may be what it asks for. `ORDER` has the freest draws first; those that only rearrange the example come last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

CLOSE = 1e-4  # of the example's own size: what counts as holding


@dataclass(frozen=True, slots=True)
class Draw:
    """A way to draw: whether it suits an example, and the values of a shape, from a free draw of that shape."""

    holds: Callable[[torch.Tensor], bool]
    made: Callable[[torch.Tensor, torch.Tensor, torch.Generator], torch.Tensor]  # (example, free draw, generator)


def candidates(example: torch.Tensor) -> list[str]:
    """Return the names of the draws that keep something which holds of an example, the freest first."""
    known = example.detach().to(torch.float64) if not example.is_complex() else example
    if not known.numel() or known.is_complex() or not bool(known.isfinite().all()):
        return ["columns", "rows"] if example.dim() else []
    return [name for name, draw in DRAWS.items() if draw.holds(known)]


def drawn(name: str, example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return values of the shape of a free draw that keep what a name says of an example."""
    return DRAWS[name].made(example.detach().to(torch.float64), free.to(torch.float64), generator)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)


def _alike(numbers: torch.Tensor) -> bool:
    """Return whether numbers are all the same, and not zero."""
    middle = numbers.mean()
    return bool(middle != 0) and bool(((numbers - middle).abs() <= CLOSE * middle.abs()).all())


def _is_square(tensor: torch.Tensor) -> bool:
    return tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1


def _is_symmetric(tensor: torch.Tensor) -> bool:
    return _is_square(tensor) and bool(torch.allclose(tensor, tensor.mT, rtol=CLOSE, atol=CLOSE * float(tensor.abs().max())))


def _is_definite(tensor: torch.Tensor) -> bool:
    return _is_symmetric(tensor) and bool((torch.linalg.eigvalsh(tensor) > 0).all())


def _is_orthogonal(tensor: torch.Tensor) -> bool:
    return _is_square(tensor) and bool(
        torch.allclose(tensor @ tensor.mT, torch.eye(tensor.shape[-1]).to(tensor), atol=CLOSE * 10)
    )


def _is_sorted(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 0 and tensor.shape[-1] > 1 and bool((tensor.diff(dim=-1) >= 0).all())


def _is_whole(tensor: torch.Tensor) -> bool:
    return bool((tensor == tensor.round()).all())


def _is_triangular(tensor: torch.Tensor) -> bool:
    return _is_square(tensor) and bool((tensor.triu(1) == 0).all())


def _same_norm(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    norm = _flat(example).norm(dim=-1).mean()
    centred = free - free.mean() if free.numel() > 1 else free
    return norm * centred / centred.norm(dim=-1, keepdim=True).clamp(min=1e-12)


def _same_sum(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    parts = torch.rand(free.shape, generator=generator, dtype=torch.float64) + 1e-3
    return _flat(example).sum(-1).mean() * parts / parts.sum(-1, keepdim=True)


def _definite(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    size = free.shape[-1]
    scale = torch.linalg.eigvalsh(example).mean()
    root = torch.randn(free.shape, generator=generator, dtype=torch.float64)
    return scale * (root @ root.mT / size + 0.1 * torch.eye(size, dtype=torch.float64))


def _orthogonal(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    turned: torch.Tensor = torch.linalg.qr(torch.randn(free.shape, generator=generator, dtype=torch.float64)).Q
    mirrored = torch.linalg.det(turned).sign() * torch.linalg.det(example).sign().reshape(-1)[0]  # rotations stay rotations
    turned = turned.clone()
    turned[..., 0] *= mirrored.unsqueeze(-1)
    return turned


def _one_hot(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    width = free.shape[-1]
    chosen = torch.randint(0, max(width, 1), free.shape[:-1], generator=generator)
    return torch.nn.functional.one_hot(chosen, width).to(torch.float64) * example.max()


def _whole(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    low, high = int(example.min()), int(example.max())
    return torch.randint(low, high + 1, free.shape, generator=generator).to(torch.float64)


def _within(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    low, high = example.min(), example.max()
    return low + (high - low) * torch.rand(free.shape, generator=generator, dtype=torch.float64)


def _mixtures(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return convex combinations of two rows of the example each."""
    one, two = _rows(example, free, generator), _rows(example, free, generator)
    share = torch.rand((free.shape[0],) + (1,) * (free.dim() - 1), generator=generator, dtype=torch.float64)
    return share * one + (1 - share) * two


def _columns(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return values each taken from its own column of the example; whole ones from between its smallest and largest."""
    table = _flat(example)
    width = free.shape[-1] if free.dim() else 1
    table = table[:, torch.arange(width) % table.shape[1]]
    rows = torch.randint(0, table.shape[0], (max(free.numel() // max(width, 1), 0), width), generator=generator)
    taken = table.gather(0, rows)
    low, high = table.min(0).values, table.max(0).values
    between = low + ((high - low + 1) * torch.rand(taken.shape, generator=generator, dtype=torch.float64)).floor()
    whole = (table == table.round()).all(0)
    return torch.where(whole, between.minimum(high), taken).reshape(free.shape)


def _rows(example: torch.Tensor, free: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return whole rows of the example in any order, some of them several times."""
    made = example
    for axis, size in enumerate(free.shape):
        old = made.shape[axis]
        if not old:
            return free
        index = torch.randint(0, old, (size,), generator=generator) if axis == 0 else torch.arange(size) % old
        made = made.index_select(axis, index)
    return made


def _has_rows(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 0 and tensor.numel() > 0


DRAWS: Mapping[str, Draw] = {
    "same-norm": Draw(lambda t: t.dim() > 0 and t.shape[-1] > 1 and _alike(_flat(t).norm(dim=-1)), _same_norm),
    "same-sum": Draw(lambda t: t.dim() > 0 and t.shape[-1] > 1 and bool((t >= 0).all()) and _alike(_flat(t).sum(-1)), _same_sum),
    "symmetric": Draw(_is_symmetric, lambda e, f, g: (f + f.mT) / 2),
    "orthogonal": Draw(_is_orthogonal, _orthogonal),
    "positive-definite": Draw(_is_definite, _definite),
    "triangular": Draw(_is_triangular, lambda e, f, g: f.tril()),
    "sorted": Draw(_is_sorted, lambda e, f, g: f.sort(dim=-1).values),
    "one-hot": Draw(
        lambda t: t.dim() > 0 and t.shape[-1] > 1 and _alike(t.max(-1).values) and bool(((t != 0).sum(-1) == 1).all()), _one_hot
    ),
    "whole": Draw(_is_whole, _whole),
    "sorted-within": Draw(_is_sorted, lambda e, f, g: _within(e, f, g).sort(dim=-1).values),
    "within": Draw(lambda t: t.numel() > 1 and bool(t.min() < t.max()), _within),
    "columns": Draw(_has_rows, _columns),
    "mixtures": Draw(_has_rows, _mixtures),
    "rows": Draw(_has_rows, _rows),
}
