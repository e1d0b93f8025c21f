"""Padding invariance: a padded call with other, far larger values where the mask says that nothing counts.

The trial is judged like any other, at the real positions: where padding does not matter in eager, it must not in the file.
"""

from __future__ import annotations

import torch

from torchferry.records import Bound
from torchferry.verify.arrays import array
from torchferry.verify.masks import padding

LOUD = 100.0  # times the usual values: a mask that leaks a thousandth is seen


def garbage_under_padding(bound: Bound, sizes: dict[str, int], seed: int) -> tuple[torch.Tensor, ...]:
    """Return a right-padded call with other values under the padding; ValueError where no input is a token mask."""
    padded, other = bound.vary(sizes, "right-padded", seed), bound.vary(sizes, "random", seed + 7)
    names = [s.name for s in bound.signature.inputs]
    examples = {n: array(a) for n, a in zip(names, bound.args, strict=True)}
    real = padding(bound.signature, {n: array(a) for n, a in zip(names, padded, strict=True)}, examples, bound.roles)
    if real is None or real.all():
        raise ValueError("no input says which tokens are padding")
    pads = torch.from_numpy(~real)
    changed = [
        _with(p, o, pads) if bound.roles.get(n, "float") in ("float", "ids") else p
        for n, p, o in zip(names, padded, other, strict=True)
    ]
    if all(c is p for c, p in zip(changed, padded, strict=True)):
        raise ValueError("no input has a value for each token")
    return tuple(changed)


def _with(values: torch.Tensor, other: torch.Tensor, pads: torch.Tensor) -> torch.Tensor:
    if tuple(values.shape[:2]) != tuple(pads.shape):
        return values
    loud = other * LOUD if values.is_floating_point() else other
    where = pads.reshape(tuple(pads.shape) + (1,) * (values.dim() - 2)).to(values.device)
    return torch.where(where, loud.to(values.dtype), values)
