"""Loops that take a tensor apart, and lists, windows and slices as long as a size or a value says."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import torch
from agreement import assert_right_at_each
from torch import nn

from torchferry.capture.rewrites import slices
from torchferry.capture.rewrites.syntax_tree import CannotRewrite


class OverSplit(nn.Module):
    def forward(self, x):
        state, seen = x.new_zeros(x.shape[0], 1, 3), []
        for i, step in enumerate(torch.split(x, 1, dim=1)):
            state = torch.tanh(state + step) * (i + 1)
            seen.append(state)
        return torch.cat(seen, dim=1)


class CarriesTuple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 3)

    def forward(self, x):
        state, seen = (x.new_zeros(x.shape[0], 3), x.new_zeros(x.shape[0], 3)), []
        for step in x.unbind(dim=1):
            state = self.cell(step, state)
            seen.append(state[0])
        return torch.stack(seen, dim=1)


class OverTwo(nn.Module):
    """Ends with the shorter of the two."""

    def forward(self, x, y):
        total, seen = x.new_zeros(x.shape[0], 3), []
        for a, b in zip(x.unbind(1), torch.unbind(y, dim=1), strict=False):
            total = total * a + b
            seen.append(total)
        return torch.stack(seen, 1)


class Lengths(nn.Module):
    def forward(self, x):
        lengths = torch.LongTensor([x.shape[1]] * x.shape[0])
        return x.sum(1) / lengths[:, None]


class Rolled(nn.Module):
    def forward(self, x, k):
        k = int(k)
        return torch.cat([x[:, -k:], x[:, :-k]], 1)


class Windowed(nn.Module):
    def forward(self, x):
        return x * torch.from_numpy(np.hanning(x.shape[1])).float()[:, None] + torch.tensor(np.bartlett(x.shape[1]))[:, None]


def _rows(*lengths: int) -> list:
    return [(torch.rand(2 + i, n, 3),) for i, n in enumerate(lengths)]


CASES = [
    (OverSplit(), _rows(5, 9, 1)),
    (CarriesTuple(), _rows(5, 9)),
    (OverTwo(), [(torch.rand(2, 5, 3), torch.rand(2, 5, 3)), (torch.rand(2, 7, 3), torch.rand(2, 4, 3))]),
    (Lengths(), _rows(5, 7)),
    (Windowed(), _rows(5, 8, 1)),
    (Rolled(), [(torch.rand(2, 6, 3), torch.tensor(k)) for k in (2, 4, 0)]),
]


@pytest.mark.parametrize(("model", "inputs"), CASES, ids=lambda v: type(v).__name__)
def test_other_lengths_are_right(model: nn.Module, inputs: list) -> None:
    assert_right_at_each(model, inputs)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("x", slices.Along("x", 0)),
        ("x.unbind(1)", slices.Along("x", 1)),
        ("torch.unbind(self.x, dim=-1)", slices.Along("self.x", -1)),
        ("x.split(1, 1)", slices.Along("x", 1, keeps=True)),
        ("x.chunk(x.size(1), dim=1)", slices.Along("x", 1, keeps=True)),
        ("x.transpose(0, 1)", slices.Along("(x.transpose(0, 1))", 0)),
        ("list(x.t().unbind())", slices.Along("(x.t())", 0)),
    ],
)
def test_the_slices_that_a_loop_goes_over_are_read(code: str, wanted: slices.Along) -> None:
    assert slices.taken_apart(ast.parse(code, mode="eval").body) == wanted


@pytest.mark.parametrize("code", ["x.split(2, 1)", "x.chunk(4, 1)", "x.unbind(axis)"])
def test_pieces_that_may_not_be_of_size_one_are_left_alone(code: str) -> None:
    with pytest.raises(CannotRewrite):
        slices.taken_apart(ast.parse(code, mode="eval").body)
