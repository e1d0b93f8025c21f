"""Padding invariance: a padded call with other, far larger values where the mask says that nothing counts.

The trial is judged like any other, at the real positions: where padding does not matter in eager, it must not in the file.
"""

from __future__ import annotations

import torch

from torchferry.records import Bound
from torchferry.verify.arrays import Array, array
from torchferry.verify.run.both_sides import Call
from torchferry.verify.trials.token_masks import padding, speaks_of, token_mask

LOUD = 100.0  # times the usual values: a mask that leaks a thousandth is seen


def garbage_under_padding(bound: Bound, sizes: dict[str, int], seed: int) -> Call:
    """Return a right-padded call with other values under the padding; ValueError where no input is a token mask."""
    padded = bound.vary(sizes, "right-padded", seed)
    real = tokens(bound, padded)
    if real is None or real.all():
        raise ValueError("no input says which tokens are padding")
    changed = with_garbage(bound, padded, real, bound.vary(sizes, "random", seed + 7))
    if all(c is p for c, p in zip(changed, padded, strict=True)):
        raise ValueError("no input has a value for each token")
    return changed


def tokens(bound: Bound, args: Call) -> Array | None:
    """Return where a call's tokens are real, as booleans of (batch, length), or None when no input is a token mask."""
    names = [s.name for s in bound.signature.inputs]
    given, examples = ({n: array(a) for n, a in zip(names, tensors, strict=True)} for tensors in (args, bound.args))
    return padding(bound.signature, given, examples, bound.roles)


def with_garbage(bound: Bound, args: Call, real: Array, other: Call) -> Call:
    """Return a call with other, loud values where its tokens are not real."""
    names = [s.name for s in bound.signature.inputs]
    mask = token_mask(bound.signature, bound.roles)
    masked = [n for n in per_token(bound, args, real) if mask is not None and speaks_of(mask.name, n, names)]
    pads = torch.from_numpy(~real)
    return tuple(_with(a, o, pads) if n in masked else a for n, a, o in zip(names, args, other, strict=True))


def per_token(bound: Bound, args: Call, real: Array) -> list[str]:
    """Return the inputs that have a value for each token."""
    telling = [(s.name, a) for s, a in zip(bound.signature.inputs, args, strict=True)]
    return [n for n, a in telling if bound.roles.get(n, "float") in ("float", "ids") and tuple(a.shape[:2]) == real.shape]


def _with(values: torch.Tensor, other: torch.Tensor, pads: torch.Tensor) -> torch.Tensor:
    loud = other * LOUD if values.is_floating_point() else other
    where = pads.reshape(tuple(pads.shape) + (1,) * (values.dim() - 2)).to(values.device)
    return torch.where(where, loud.to(values.dtype), values)
