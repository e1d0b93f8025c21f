"""Batch normalisations that an exporter multiplied into the layer before them, computed again from the model's own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from torchferry.foreign.torch_modules import BatchNorm
from torchferry.verify.arrays import Array
from torchferry.verify.coverage.equality import close, orders
from torchferry.verify.coverage.recipes import Normalised, factors, reordered
from torchferry.verify.coverage.stored import Stored

FEW = 8  # channels of a weight that are looked at before all are


def norms(module: torch.nn.Module, prefix: str) -> dict[str, float]:
    """Return the batch normalisations that keep statistics: their paths, with the dot, and what they add to the variance."""
    found = {}
    for path, part in module.named_modules():
        if isinstance(part, BatchNorm) and part.running_var is not None and not part.training:
            found[f"{path}.".removeprefix(prefix)] = float(part.eps)
    return found


def folded(
    stored: Stored, values: Array, tensors: Mapping[str, Array], names: Sequence[str], known: Mapping[str, float]
) -> Normalised | None:
    """Return which weight, of those named, times which normalisation a tensor of the file is; None if it is none."""
    for norm, eps in known.items():
        scale, shift = factors(tensors, norm, eps)
        found = _bias(stored, values, tensors, names, norm, eps, scale, shift) if len(scale) == values.size else None
        if found is None and values.ndim > 1 and values.size % len(scale) == 0:
            found = _weight(stored, values, tensors, names, norm, eps, scale)
        if found is not None:
            return found
    return None


def _bias(
    stored: Stored,
    values: Array,
    tensors: Mapping[str, Array],
    names: Sequence[str],
    norm: str,
    eps: float,
    scale: Array,
    shift: Array,
) -> Normalised | None:
    for name in (None, *(n for n in names if tensors[n].size == len(scale))):
        own = np.zeros(len(scale)) if name is None else tensors[name].astype(np.float64).reshape(-1)
        if close(values, own * scale + shift):
            return Normalised(name, norm, eps, (), -1, stored.shape, stored.dtype)
    return None


def _weight(
    stored: Stored, values: Array, tensors: Mapping[str, Array], names: Sequence[str], norm: str, eps: float, scale: Array
) -> Normalised | None:
    for name in names:
        own = tensors[name]
        if own.size != values.size or own.ndim < 2:
            continue
        for axis, order in _turns(own, len(scale)):
            along = [1] * own.ndim
            along[axis] = -1
            few = tuple(slice(FEW) if i == axis else slice(1) for i in range(own.ndim))
            turned = reordered(own, order)
            shaped = values.reshape(turned.shape)
            squeezed = [i for i in range(own.ndim) if own.shape[i] != 1]
            seen = shaped[tuple(few[squeezed[i]] for i in order)].reshape(-1)
            if not close(seen, (own[few] * scale.reshape(along)[few]).reshape(-1)):
                continue
            if close(shaped, reordered(own * scale.reshape(along), order)):
                return Normalised(name, norm, eps, order, axis, stored.shape, stored.dtype)
    return None


def _turns(own: Array, channels: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the axes that have so many channels, and the orders in which the weight may stand in the file."""
    axes = sum(s != 1 for s in own.shape)
    for axis in (a for a in range(min(own.ndim, 2)) if own.shape[a] == channels):
        yield from ((axis, order) for order in orders(axes) if axes <= 2 or order == tuple(range(axes)))
