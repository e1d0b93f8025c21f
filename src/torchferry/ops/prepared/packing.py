"""Packed sequences that remember the padded batch they came from, so that a recurrent layer can have it back with lengths.

torch's packed form drops the padding, which makes every size depend on values. Here it is made, exactly as torch makes it,
only for those who look at `.data`; what goes from pack to layer to unpack stays padded.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from torchferry.foreign.torch_modules import packed_by
from torchferry.foreign.torch_shapes import assume, expression

_KEY = "_torchferry_batch"


@dataclass(frozen=True, slots=True)
class _Batch:
    """What a packed sequence was made of: (time, batch) true where there is a step, and the lengths."""

    mask: Tensor
    lengths: Tensor


def packing() -> AbstractContextManager[None]:
    """Return a context in which torch's packing functions keep the padded batch."""
    return packed_by(_pack_padded_sequence, _pad_packed_sequence)


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    padded = input.transpose(0, 1) if batch_first else input
    steps = torch.arange(padded.shape[0], device=padded.device)
    batch = _Batch(steps.unsqueeze(1) < lengths.unsqueeze(0), lengths)
    longest = lengths.max().item()
    assume(longest >= 1)
    assume(longest <= padded.shape[0])
    sizes = batch.mask.sum(1)[:longest]  # type: ignore[misc]
    return _tagged(_packed(padded, batch.mask), (batch, padded)), _tagged(sizes, batch)


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: Any
) -> tuple[Tensor, Tensor]:
    batch = _batch(batch_sizes)
    padded = _padded(data, batch)
    mask = batch.mask.reshape(*batch.mask.shape, *[1] * (padded.dim() - 2))
    padded = torch.where(mask, padded, torch.full_like(padded[:1], padding_value))
    if not (isinstance(total_length, torch.SymInt | int) and _same(total_length, padded.shape[0])):
        padded = _resized(padded, total_length, _same(total_length, batch_sizes.shape[0]), padding_value)
    return padded.transpose(0, 1) if batch_first else padded, batch.lengths.cpu()


def _same(a: Any, b: Any) -> bool:
    """Whether two sizes are one symbol: asking for their values could tie them to the example."""
    nodes = [expression(n) if isinstance(n, torch.SymInt) else n for n in (a, b)]
    return bool(nodes[0] == nodes[1])


def _resized(padded: Tensor, total: Any, shorter: bool, padding_value: Any) -> Tensor:
    if shorter:
        return padded[:total]
    return torch.nn.functional.pad(padded, [0, 0] * (padded.dim() - 1) + [0, total - padded.shape[0]], value=padding_value)


def lengths(sequence: PackedSequence) -> Tensor:
    """Return the lengths of a packed sequence's members, in its own order."""
    return _batch(sequence.batch_sizes).lengths


def padded(sequence: PackedSequence) -> Tensor:
    """Return the padded batch (time, batch, features) of a packed sequence, in its own order."""
    return _padded(sequence.data, _batch(sequence.batch_sizes))


def repacked(output: Tensor, like: PackedSequence) -> PackedSequence:
    """Return a layer's padded output as a packed sequence with the order of another."""
    batch = _batch(like.batch_sizes)
    data = _tagged(_packed(output, batch.mask), (batch, output))
    return PackedSequence(data, like.batch_sizes, like.sorted_indices, like.unsorted_indices)


def _packed(padded: Tensor, mask: Tensor) -> Tensor:
    """Return the steps that exist, time by time: torch's packed form."""
    return padded.flatten(0, 1).index_select(0, mask.flatten().nonzero().squeeze(1))


def _padded(data: Tensor, batch: _Batch) -> Tensor:
    tag = getattr(data, _KEY, None)
    if tag is not None and tag[0] is batch:
        return tag[1]  # type: ignore[no-any-return]
    place = (batch.mask.flatten().cumsum(0) - 1).clamp(min=0)
    rows = data.index_select(0, place).reshape(*batch.mask.shape, *data.shape[1:])
    return rows * batch.mask.reshape(*batch.mask.shape, *[1] * (data.dim() - 1)).to(data.dtype)


def _batch(batch_sizes: Tensor) -> _Batch:
    found = getattr(batch_sizes, _KEY, None)
    if found is None:
        raise NotImplementedError("a packed sequence made by hand, without pack_padded_sequence, cannot be followed")
    return found  # type: ignore[no-any-return]


def _tagged(tensor: Tensor, tag: Any) -> Tensor:
    setattr(tensor, _KEY, tag)
    return tensor
