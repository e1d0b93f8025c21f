"""What Python reads from weights and buffers is known during a capture; what it reads from anything else is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bound import agrees, bound, captured
from torch import nn

from torchferry import eager
from torchferry.records.findings import DataDependent


class Anchored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("anchors", torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        self.register_buffer("rounds", torch.tensor(3))
        self.register_buffer("on", torch.tensor(True))

    def forward(self, x):
        areas = np.prod(self.anchors.cpu().numpy(), axis=1)
        y = x * torch.from_numpy(np.sort(areas)).to(x)
        for _ in range(int(self.rounds)):
            y = y * 1.5
        if self.on:
            y = y + self.anchors.sum(1).tolist()[1]
        return y[:, : self.rounds.item() - 1]


class Moving(nn.Module):
    """The buffer holds what came in by the time that it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen.copy_(x[:1])
        return x * 2 if self.seen.item() > 0 else x


class Drawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("chance", torch.tensor(0.5))

    def forward(self, x):
        return x * 2 if torch.bernoulli(self.chance).item() else x


class Spread(nn.Module):
    """A weight at a moving size is of that size, and not known."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.rand(1, 2))

    def forward(self, x):
        return torch.cat([self.token.expand(x.shape[0], -1), x], 1)


class Detached(nn.Module):
    def forward(self, x):
        y = x.data.clone()
        y[y < 0] = 0
        return y * 2


@pytest.mark.parametrize("model", [Anchored(), Spread(), Detached()], ids=lambda m: type(m).__name__)
def test_what_is_known_is_read(model: nn.Module) -> None:
    step = captured(bound(model, (torch.rand(3, 2),), {0: {0: "batch"}}))
    assert agrees(step, model, (torch.rand(3, 2),), (torch.rand(5, 2) - 0.5,))


@pytest.mark.parametrize("model", [Moving(), Drawing()], ids=lambda m: type(m).__name__)
def test_a_buffer_that_was_written_and_a_draw_are_not_known(model: nn.Module) -> None:
    step = captured(bound(model, (torch.rand(3),), {0: {0: "batch"}}))
    assert step.fault is not None
    assert [f for f in step.findings if isinstance(f, DataDependent)]


class Hooked(nn.Module):
    """Its hooks close over the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.seen = nn.Linear(2, 2), {}

        def keep(part, given, made):
            self.seen["fc"] = made * 2

        self.fc.register_forward_hook(keep)

    def forward(self, x):
        return self.fc(x) + self.seen["fc"]


def test_a_hook_of_the_copy_writes_into_the_copy() -> None:
    model = Hooked()
    copied = eager.fresh(model)
    x = torch.rand(3, 2)
    assert torch.equal(copied(x), copied.fc(x) + copied.fc(x) * 2)
    assert not model.seen
    assert agrees(captured(bound(model, (x,), {0: {0: "batch"}})), model, (torch.rand(5, 2),))


def test_python_types_are_dtypes_during_a_capture() -> None:
    class Typed(nn.Module):
        def forward(self, x):
            return x + torch.from_numpy(np.ones(2, dtype=float)).to(x) + torch.ones(2, dtype=int) + x.to(int)

    model = Typed()
    step = captured(bound(model, (torch.rand(3, 2),), {0: {0: "batch"}}))
    assert step.value.strategy == "non-strict"
    assert agrees(step, model, (torch.rand(5, 2) * 9,))
