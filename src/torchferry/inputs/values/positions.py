"""Ways to fill positions and lengths: one plain range and the many that are none, rows from empty to full."""

from __future__ import annotations

import torch

from torchferry.inputs.values.roles import InputRole


def plain(example: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return one range for all rows, from where the example's begins."""
    if not shape:
        return example.clone()
    first = int(example.min()) if example.numel() else 0
    return (torch.arange(shape[-1]) + first).expand(shape).clone()


def later(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return positions further on: the last that there are, or some steps on where no table ends them."""
    last = part.high - 1 - int(tensor.max()) if tensor.numel() else 0
    return tensor + (last if last > 0 else 3)


def ragged(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return ranges that begin elsewhere in each row, and never before the first position: left-padded rows have these."""
    if tensor.dim() < 2 or not tensor.numel():
        return tensor.flip(-1) if tensor.dim() else tensor
    rows = tensor.reshape(-1, tensor.shape[-1])
    back = torch.randint(0, tensor.shape[-1], (rows.shape[0], 1), generator=generator)
    back[-1] = tensor.shape[-1] // 2
    return (rows - back).clamp(min=int(tensor.min())).reshape(tensor.shape)


def gapped(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return rising positions that leave some out."""
    steps = torch.randint(1, 4, tensor.shape, generator=generator)
    return tensor + steps.cumsum(-1) - steps[..., :1] if tensor.dim() else tensor + 1


def repeated(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return positions each of which comes twice."""
    first = int(tensor.min()) if tensor.numel() else 0
    return (tensor - first) // 2 + first


def reset(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return positions that begin anew in the middle of each row: two documents in one."""
    if not tensor.dim() or tensor.shape[-1] < 2:
        return tensor
    middle = (tensor.shape[-1] + 1) // 2
    return torch.cat([tensor[..., :middle], tensor[..., : tensor.shape[-1] - middle]], -1)


def backwards(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return positions in falling order."""
    return tensor.flip(-1) if tensor.dim() else tensor


def far(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return positions of a long text, thousands of tokens on."""
    return tensor + 30000


# --- lengths ---------------------------------------------------------------------------------------


def lengths_like(shape: tuple[int, ...], part: InputRole, generator: torch.Generator, longest: int) -> torch.Tensor:
    """Return lengths from 1 to the longest, one of them the longest, in the example's order if it has one."""
    values = torch.randint(1, longest + 1, shape, generator=generator)
    if values.numel():
        values[0] = longest  # a batch is padded to its longest row
    if part.rising or part.falling:
        values = values.sort(descending=part.falling).values
    return values


def some_empty(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return lengths of which every other one is 0, the first of them where there is only one."""
    made = tensor.clone().reshape(-1)
    made[1 if made.numel() > 1 else 0 :: 2] = 0
    if part.rising or part.falling:
        made = made.sort(descending=part.falling).values
    return made.reshape(tensor.shape)


def all_equal(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return the longest length in every place."""
    return torch.full_like(tensor, int(tensor.max()) if tensor.numel() else 1)
