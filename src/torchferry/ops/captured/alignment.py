"""CTC loss over padded targets as a recursion over time; torch's own operator has a result whose size the data decides."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_control_flow import scan_op

NEVER = -torch.inf


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return F.ctc_loss: minus the log of the summed probability of all alignments."""
    batched = log_probs.dim() == 3
    probs = log_probs if batched else log_probs.unsqueeze(1)
    steps, count = (torch.as_tensor(n, dtype=torch.int64).reshape(-1) for n in (input_lengths, target_lengths))
    loss = _loss(probs, _padded(targets, count, batched), steps, count, blank)
    if zero_infinity:
        loss = torch.where(loss == torch.inf, torch.zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / count.clamp_min(1).to(loss.dtype)).mean()
    return loss.sum() if reduction == "sum" else loss if batched else loss.squeeze(0)


def _padded(targets: Tensor, count: Tensor, batched: bool) -> Tensor:
    """Return targets as [batch, longest]; those that came end to end are cut apart by their lengths."""
    if targets.dim() == 2:
        return targets
    if not batched:
        return targets.unsqueeze(0)
    starts = count.cumsum(0) - count
    places = starts.unsqueeze(1) + torch.arange(targets.shape[0])  # none is longer than all of them together
    return targets.index_select(0, places.clamp_max(targets.shape[0] - 1).reshape(-1)).reshape(places.shape)


def _loss(probs: Tensor, targets: Tensor, steps: Tensor, count: Tensor, blank: int) -> Tensor:
    """Return the loss of each sequence: states are blanks and labels in turn, and a step stays, moves on or skips a blank."""
    longest = targets.shape[1]
    state = torch.arange(2 * longest + 1)
    reached = state < 2 * count.unsqueeze(1) + 1
    label = targets.index_select(1, (state // 2).clamp_max(longest - 1)) if _some(longest) else torch.zeros_like(reached)
    label = torch.where(reached & (state % 2 == 1), label.to(torch.int64), blank)  # what pads a target may be no label at all
    skips = (state % 2 == 1) & (state > 1) & (label != _later(label, 2, blank))
    emitted = probs.gather(2, label.unsqueeze(0).expand(probs.shape[0], -1, -1))
    first = torch.where((state < 2) & reached, emitted[0], NEVER)
    alpha = _recursion(first, emitted, skips, steps) if not isinstance(probs.shape[0], int) or probs.shape[0] > 1 else first
    last = alpha.gather(1, 2 * count.unsqueeze(1))
    before = alpha.gather(1, (2 * count.unsqueeze(1) - 1).clamp_min(0))
    before = torch.where(count.unsqueeze(1) > 0, before, NEVER)
    loss = -_log_of_sum(last, before).squeeze(1)
    return torch.where(steps > 0, loss, torch.where(count == 0, 0.0, torch.inf).to(loss.dtype))


def _recursion(first: Tensor, emitted: Tensor, skips: Tensor, steps: Tensor) -> Tensor:
    """Return the states' log probabilities after each sequence's own number of steps."""

    def step(alpha: Tensor, now: Tensor, k: Tensor, skips: Tensor, steps: Tensor) -> list[Tensor]:
        come = _log_of_sum(alpha, _later(alpha, 1, NEVER), torch.where(skips, _later(alpha, 2, NEVER), NEVER)) + now
        return [torch.where((k < steps).unsqueeze(1), come, alpha)]

    times = torch.arange(1, emitted.shape[0])
    return scan_op(step, [first.clone()], [emitted[1:].contiguous(), times], (skips.clone(), steps.clone()))[0]  # type: ignore[no-any-return]


def _later(x: Tensor, by: int, fill: float) -> Tensor:
    """Return the tensor moved along its last axis, with `fill` in front."""
    return torch.nn.functional.pad(x, (by, 0), value=fill).narrow(1, 0, x.shape[1])


def _log_of_sum(*terms: Tensor) -> Tensor:
    stacked = torch.stack(terms)
    largest = stacked.amax(0)
    shift = torch.where(largest == NEVER, torch.zeros_like(largest), largest)
    return (stacked - shift).exp().sum(0).log() + shift


def _some(size: Any) -> bool:
    return not isinstance(size, int) or size > 0
