"""Losses as torch computes them: with label smoothing, classes as probabilities, and single samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten

NONE, MEAN = 0, 1  # torch's numbers for reductions; 2 is the sum


def cross_entropy(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of logits against class indices or probabilities."""
    axis = 0 if self.dim() == 1 else 1
    logs = self.log_softmax(axis)
    shape = [-1 if a == axis else 1 for a in range(self.dim())]
    weighted = logs if weight is None else logs * weight.reshape(shape)
    if target.is_floating_point():
        classes = self.shape[axis]
        target = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        loss = -(weighted * target).sum(axis)
        return (
            loss.sum() / torch.scalar_tensor(loss.numel(), dtype=loss.dtype) if reduction == MEAN else _reduced(loss, reduction)
        )
    counted = target != ignore_index
    place = torch.where(counted, target, torch.zeros_like(target))
    loss = torch.where(counted, -weighted.gather(axis, place.unsqueeze(axis)).squeeze(axis), 0.0)
    weights = (
        counted.to(self.dtype)
        if weight is None
        else torch.where(counted, weight.index_select(0, place.reshape(-1)).reshape(place.shape), 0.0)
    )
    result = loss.sum() / weights.sum() if reduction == MEAN else _reduced(loss, reduction)
    if not label_smoothing:
        return result
    smooth = torch.where(counted, -weighted.sum(axis), 0.0)
    smooth = smooth.sum() / weights.sum() if reduction == MEAN else _reduced(smooth, reduction)
    return (1 - label_smoothing) * result + smooth * (label_smoothing / self.shape[axis])


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return loss if reduction == NONE else loss.mean() if reduction == MEAN else loss.sum()


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.cross_entropy_loss.default: cross_entropy}
