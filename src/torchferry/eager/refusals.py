"""Functions of torch that refuse what theirs take without a word, and read beyond an array for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")  # the functions of torch._VF behind the recurrent layers


def within_range(ctc_loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return the loss, refusing labels and lengths that are out of range: for those the process dies."""

    def function(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *rest: Any, **options: Any) -> Any:
        labels, ends, counts = (torch.as_tensor(t) for t in (targets, input_lengths, target_lengths))
        room = targets.shape[-1] if targets.dim() == 2 else targets.numel() - counts.sum() + counts.max()
        within = [(labels, log_probs.shape[-1] - 1), (ends, log_probs.shape[0]), (counts, room)]
        if any(t.numel() and (t.min() < 0 or t.max() > most) for t, most in within):
            raise RuntimeError("ctc_loss: a label or a length is out of range")
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, *rest, **options)

    return function


def same_width(recurrent: Callable[..., Any]) -> Callable[..., Any]:
    """Return a recurrent layer's function, refusing a packed sequence of another width: without gradients torch takes any."""

    def function(data: Any, *rest: Any) -> Any:
        weights = rest[2]  # of a packed sequence the sizes of its batches come second, and the weights one later
        packed = isinstance(rest[0], torch.Tensor) and isinstance(weights, list | tuple)
        if packed and data.shape[-1] != (width := weights[0].shape[1]):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {width}, got {data.shape[-1]}")
        return recurrent(data, *rest)

    return function
