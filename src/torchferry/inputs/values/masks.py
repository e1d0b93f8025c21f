"""Ways to fill masks: which tokens of each row count, from all of them to none, in whatever numbers a mask is written."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchferry.inputs.values.roles import Fill, InputRole


def padding(*, left: bool) -> Fill:
    """Return a way that leaves a random part of each row valid, the first row whole."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        made = valid(tensor, lambda rows, width: torch.randint(1, width + 1, (rows,), generator=generator))
        return made.flip(-1) if left else made

    return fill


def valid(tensor: torch.Tensor, lengths: Callable[[int, int], torch.Tensor], *, first_whole: bool = True) -> torch.Tensor:
    """Return which places of each row count: as many at its beginning as `lengths(rows, width)` says."""
    if not tensor.dim() or not tensor.numel():
        return torch.ones_like(tensor)
    width = tensor.shape[-1]
    count = lengths(tensor.numel() // width, width)
    if first_whole:
        count[0] = width
    return (torch.arange(width)[None] < count[:, None]).reshape(tensor.shape)


def in_its_sense(fill: Fill) -> Fill:
    """Return a way that keeps the example's sense of a mask: where most of it is 0 or False, 0 means valid."""

    def wrapped(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        made = fill(tensor, part, generator).to(torch.bool)
        mostly_off = tensor.numel() > 0 and float(tensor.to(torch.float64).mean()) < 0.5
        return ~made if mostly_off else made

    return wrapped


def whole(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return a mask that hides nothing."""
    return torch.ones_like(tensor)


def one_valid(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return a mask with one token in each row."""
    return valid(tensor, lambda rows, width: torch.ones(rows, dtype=torch.int64), first_whole=False)


def empty_row(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return a mask whose last row has no token at all."""

    def lengths(rows: int, width: int) -> torch.Tensor:
        count = torch.full((rows,), width)
        count[-1] = 0
        return count

    return valid(tensor, lengths, first_whole=False)


def scattered(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return a mask with holes anywhere but at the first place."""
    mask = torch.rand(tensor.shape, generator=generator) < 0.7
    if mask.dim() and mask.numel():
        mask[..., 0] = True
    return mask


def nothing_valid(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return a mask that hides everything."""
    return torch.zeros_like(tensor)


def segments(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return rows packed with several documents, numbered 1, 2, 3, with padding at the end of all but the first row."""
    if tensor.dtype == torch.bool:
        raise ValueError("a mask of booleans has no room for segments")
    if not tensor.dim() or not tensor.numel():
        return tensor
    width, rows = tensor.shape[-1], tensor.numel() // tensor.shape[-1]
    cuts = torch.randint(1, width + 1, (rows, 2), generator=generator).sort(-1).values
    at = torch.arange(width)[None]
    number = 1 + (at >= cuts[:, :1]).to(torch.int64) + (at >= cuts[:, 1:])
    ends = torch.randint(1, width + 1, (rows,), generator=generator)
    ends[0] = width
    return torch.where(at < ends[:, None], number, 0).reshape(tensor.shape)


def halves(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return a float mask with weights between 0 and 1."""
    if not tensor.is_floating_point():
        raise ValueError("only a mask of floats has room for weights")
    return torch.randint(0, 5, tensor.shape, generator=generator) / 4


def share_like(example: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Return zeros and ones at random, about as many ones as in the example, though never all of one kind."""
    share = float(example.to(torch.float64).mean()) if example.numel() else 0.5
    return torch.rand(shape, generator=generator) < min(max(share, 0.2), 0.8)
