"""What a model only keeps for whoever looks at it later does not stand in the way of a loop; what it reads again does."""

from __future__ import annotations

import torch
from agreement import assert_right_at_each
from torch import nn

import torchferry


class Field(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.calls, self.last, self.seen = 0, None, []

    def forward(self, y):
        self.calls += 1
        self.last = torch.tanh(self.net(y))
        slope = torch.tanh(self.net(y))
        self.seen.append(slope)
        return slope


class Stepped(nn.Module):
    """Counts its calls, and keeps what it saw, as solvers and attention layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Field()

    def forward(self, y):
        t = torch.tensor(0.0)
        while t < 1.0:
            h = 0.1 + 0.2 * torch.sigmoid(y.mean())
            y = y + h * self.field(y)
            t = t + h
        return y


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before = torch.zeros(3)

    def step(self, y):
        self.before = self.before * 0.5 + y.mean(0)
        return y * 0.5 + self.before

    def forward(self, y):
        while y.abs().sum() > 1.0:
            y = self.step(y) * 0.2
        return y


def test_a_loop_may_count_its_calls_and_keep_what_it_saw() -> None:
    torch.manual_seed(0)
    assert_right_at_each(Stepped(), [(torch.randn(n, 3),) for n in (2, 4)])


def test_what_is_read_again_is_not_left_out() -> None:
    result = torchferry.export(Remembering().eval(), (torch.randn(2, 3),), check=False)
    assert not result.ok
    assert [d.code for d in result.diagnoses if d.severity == "error"] == ["CAP003"]
