"""Padding, cropping and resizing under a condition that only spares an operation which would change nothing."""

from __future__ import annotations

import ast

import pytest
import torch
from agreement import assert_right_at_each
from torch import nn
from torch.nn import functional

from torchferry.capture.rewrites import identities


class PadToMultiple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 2, 4, 4)

    def forward(self, x):
        height, width = x.shape[-2:]
        below, right = (-height) % 4, (-width) % 4
        x = functional.pad(x, (0, right, 0, below), mode="reflect") if below or right else x
        return self.down(x)


class PadByRest(nn.Module):
    def forward(self, x):
        if x.shape[-1] % 4 != 0:
            x = functional.pad(x, (0, 4 - x.shape[-1] % 4))
        return x.unflatten(-1, (-1, 4)).sum(-1)


class Resized(nn.Module):
    def forward(self, x, y):
        if x.shape[-1:] != y.shape[-1:]:
            x = functional.interpolate(x, size=y.shape[-1:], mode="linear")
        return x + y


class PadsLongOnes(nn.Module):
    """Here the condition does matter."""

    def forward(self, x):
        if x.shape[-1] > 8:
            x = functional.pad(x, (0, 3))
        return x * 2


CASES = [
    (PadToMultiple(), [(torch.rand(2, 1, 16, 20),), (torch.rand(1, 1, 17, 23),)]),
    (PadByRest(), [(torch.rand(2, 8),), (torch.rand(3, 11),)]),
    (Resized(), [(torch.rand(1, 2, 6), torch.rand(1, 2, 6)), (torch.rand(1, 2, 5), torch.rand(1, 2, 9))]),
    (PadsLongOnes(), [(torch.rand(2, 8),), (torch.rand(2, 11),)]),
]


@pytest.mark.parametrize(("model", "inputs"), CASES, ids=lambda v: type(v).__name__)
def test_sizes_on_both_sides_of_the_condition_are_right(model: nn.Module, inputs: list) -> None:
    assert_right_at_each(model, inputs)


@pytest.mark.parametrize(
    ("code", "suits"),
    [
        ("if pad: x = F.pad(x, (0, pad))", True),
        ("if pad: x = x[:, :n]", True),
        ("x = F.pad(x, p) if p else x", True),
        ("x = x if not p else F.pad(x, p)", True),
        ("if pad: x = F.pad(y, (0, pad))", False),
        ("if pad: x = F.relu(x)", False),
        ("if pad: x = x[:, 0]", False),
        ("x = F.pad(x, p) if p else y", False),
    ],
)
def test_only_what_gives_back_its_input_is_done_always(code: str, suits: bool) -> None:
    assert identities.suits(ast.parse(code).body[0]) is suits
