"""Sums taken one number after the other, as some kernels of runtimes take them.

torch adds in pairs, which costs a long sum a unit or two in its last place. In turn it may cost a hundred times as much, all
to one side where the numbers are alike. How much it is hangs on the numbers, so it is found by adding them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchferry.foreign.torch_operators import is_mutable

PLAIN = ("sum", "mean", "cumsum")
WEIGHT_OF = {"native_batch_norm": 1, "native_group_norm": 1, "native_layer_norm": 2}  # which argument scales what is normalised


def in_turn(name: str, func: Any, args: tuple[Any, ...], out: Any) -> torch.Tensor | None:
    """Return what a sum, mean or running sum of torch's comes to if taken in turn; None for any other operator."""
    if name not in PLAIN or is_mutable(func) or out.dtype not in (torch.float32, torch.float64):
        return None
    taken, dims = args[0], args[1] if len(args) > 1 else None
    if not taken.numel() or not taken.dim() or taken.is_nested:
        return None
    axes = sorted(d % taken.dim() for d in ([dims] if isinstance(dims, int) else dims or range(taken.dim())))
    rest = [a for a in range(taken.dim()) if a not in axes]
    numbers = taken.detach().to(out.dtype).permute(*axes, *rest).reshape(-1, *(taken.shape[a] for a in rest))
    sums = torch.from_numpy(np.add.accumulate(numbers.numpy(), axis=0))
    if name == "cumsum":
        return sums.movedim(0, axes[0])
    return (sums[-1] / (len(sums) if name == "mean" else 1)).reshape(out.shape)


def moved_by_its_mean(name: str, args: tuple[Any, ...], out: Any) -> torch.Tensor | None:
    """Return how far what is normalised lies off if its means are taken in turn; None for any other operator.

    Where numbers are alike, little is left of them without their mean, and that is divided by little.
    """
    if name not in WEIGHT_OF or out[0].dtype not in (torch.float32, torch.float64) or not out[1].numel():
        return None
    given, by_channel = args[0].detach(), name == "native_batch_norm"
    rows = (given.transpose(0, 1) if by_channel else given).reshape(out[1].numel(), -1).contiguous()
    if not rows.shape[1]:
        return None
    means = torch.from_numpy(np.add.accumulate(rows.T.contiguous().numpy(), axis=0)[-1]) / rows.shape[1]
    off = (means.double() - rows.double().mean(1)).abs().to(given.dtype) * out[2].detach().reshape(-1)
    if by_channel:
        far = off.reshape(1, -1, *[1] * (given.dim() - 2)).expand_as(given)
    else:
        far = off[:, None].expand_as(rows).reshape(given.shape)
    weight = args[WEIGHT_OF[name]]
    if weight is None:
        return far
    across = weight if name == "native_layer_norm" else weight.reshape(1, -1, *[1] * (given.dim() - 2))
    return far * across.detach().abs()
