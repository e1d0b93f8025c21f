"""Loops over slices of one width: chunks, the last of which is cut short, windows that overlap, and what they close over."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from agreement import assert_right_at_each
from bound import agrees, bound, captured, healed
from torch import nn

import torchferry
from torchferry.capture.patches import numbers
from torchferry.capture.rewrites.sites import candidates, loop_of


class ChunkedAttention(nn.Module):
    """Its three tensors are views of one, which no body of a loop may take together as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.chunk = nn.Linear(4, 12), 4

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        out = []
        for i in range(0, q.shape[1], self.chunk):
            score = q[:, i : i + self.chunk] @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) / np.sqrt(4)
            out.append(score.softmax(-1) @ v)
        return torch.cat(out, dim=1)


class OverlapAdd(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        for j in range((x.shape[-1] - 4) // 2 + 1):
            s = j * 2
            y[:, s : s + 4] += x[:, s : s + 4].tanh()
        return y


class MeanOfChunk(nn.Module):
    """A chunk that is cut short has another mean: to fill it up would change what is computed."""

    def forward(self, x):
        out = []
        for i in range(0, x.shape[1], 4):
            piece = x[:, i : i + 4]
            out.append(piece - piece.mean(1, keepdim=True))
        return torch.cat(out, dim=1)


class BranchOnStep(nn.Module):
    def forward(self, x):
        seen, last = [], x[:, 0]
        for t, step in enumerate(x.unbind(1)):
            last = last + step
            seen.append(last if t > 0 else step * 3)
        return torch.stack(seen, 1)


class LstmOverTime(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def forward(self, x):
        state = None
        for t in range(x.size(1)):
            out, state = self.lstm(x[:, t].unsqueeze(0), state)
        return out[-1]


class TableByStep(nn.Module):
    """An index that is read at each step is a whole row of them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 5))

    def forward(self, ids):
        state = self.table[:, ids[:, 0]]
        for t in range(1, ids.size(1)):
            state = state.cumsum(0).tanh() + self.table[:, ids[:, t]]
        return state


BOTH = {0: {0: "batch", 1: "length"}}
SIZES = ((2, 10), (1, 7), (3, 16))
MODELS = {
    ChunkedAttention: lambda size: torch.randn(*size, 4),
    BranchOnStep: lambda size: torch.randn(*size, 3),
    TableByStep: lambda size: torch.randint(0, 5, size),
}


@pytest.mark.parametrize("kind", MODELS)
def test_such_a_loop_is_right_at_every_length(kind: type[nn.Module]) -> None:
    model, calls = kind().eval(), [(MODELS[kind](size),) for size in SIZES]
    step = healed(bound(model, calls[0], BOTH))
    with torch.no_grad():
        assert agrees(step, model, *calls)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LstmOverTime, OverlapAdd])
def test_a_recurrent_layer_may_stand_in_a_loop_and_windows_may_overlap(kind: type[nn.Module]) -> None:
    rest = (3,) if kind is LstmOverTime else ()
    assert_right_at_each(kind(), [(torch.randn(*size, *rest),) for size in ((2, 8), (2, 10), (1, 7))])


@pytest.mark.slow
def test_a_chunk_whose_rows_depend_on_each_other_is_not_filled_up_unseen() -> None:
    more = [((torch.randn(2, 6, 3),), {})]
    assert not torchferry.export(MeanOfChunk().eval(), (torch.randn(2, 8, 3),), examples=more, check=False).ok


def test_a_line_in_a_loop_that_is_rewritten_already_is_not_told_as_a_second_loop() -> None:
    head = BranchOnStep.forward.__code__.co_firstlineno + 2
    sites = [site for line in (head, head + 1, head + 2) for site in candidates(BranchOnStep(), __file__, line)]
    assert {loop_of(site) for site in sites if site.kind == "for"} == {head}


def test_dynamo_takes_no_function_of_ours_for_one_of_numpy() -> None:
    captured(bound(OverlapAdd(), (torch.randn(2, 10),), {}))
    assert torch._dynamo.trace_rules.is_numpy(np.sqrt)
    assert not any(torch._dynamo.trace_rules.is_numpy(f) for f in (*numbers._NUMPY.values(), *numbers._MATH.values()))
