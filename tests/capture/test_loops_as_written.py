"""Loops as people write them: a state that is None at first, numbers read from a tensor, lists that begin with something."""

from __future__ import annotations

import pytest
import torch
from bound import agrees, bound, healed
from torch import nn


class NoneAtFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.given, self.kept = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        state, seen = None, []
        for t in range(x.size(1)):
            new = self.given(x[:, t])
            if state is not None:
                new = new + self.kept(state)
            state = torch.tanh(new)
            seen.append(state)
        return torch.stack(seen, dim=1), state


class OverNumbers(nn.Module):
    def forward(self, x, lengths):
        last = []
        for i, n in enumerate(lengths.tolist()):
            last.append(x[i, n - 1])
        return torch.stack(last)


class TurnedRound(nn.Module):
    def forward(self, x):
        total, seen = x.new_zeros(x.shape[0], 3), []
        for t in reversed(range(x.size(1))):
            total = total * 0.5 + x[:, t]
            seen.append(total)
        seen = seen[::-1]
        return torch.stack(seen, 1)


class BeginsWithSomething(nn.Module):
    def forward(self, x):
        y = x[:, 0]
        path = [y]
        for before, after in zip(x.transpose(0, 1)[:-1], x.transpose(0, 1)[1:], strict=True):
            y = y * 0.5 + (after - before)
            path.append(y)
        return torch.stack(path, 1)


class Filter(nn.Module):
    """A weight's `.T` and an inverse in the loop's body; what is carried changes its strides."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.eye(2) * 0.9 + 0.01)

    def forward(self, x):
        spread, seen = torch.eye(2).expand(x.shape[0], 2, 2), []
        for y in x.unbind(1):
            spread = torch.linalg.inv(self.a @ spread @ self.a.T + 0.5 * torch.eye(2))
            seen.append((spread @ y.unsqueeze(-1)).squeeze(-1))
        return torch.stack(seen, 1)


X = {0: {0: "batch", 1: "length"}}


def drawn(batch: int, length: int, width: int = 3) -> tuple[torch.Tensor, ...]:
    return (torch.rand(batch, length, width),)


@pytest.mark.parametrize("model", [NoneAtFirst(), TurnedRound(), BeginsWithSomething(), Filter()], ids=lambda m: type(m).__name__)
def test_a_loop_over_a_moving_length_keeps_its_meaning(model: nn.Module) -> None:
    width = 2 if isinstance(model, Filter) else 3
    step = healed(bound(model, drawn(2, 5, width), X))
    assert agrees(step, model, drawn(2, 5, width), drawn(3, 8, width), drawn(2, 2, width))


def test_a_loop_over_the_numbers_in_a_tensor_keeps_its_meaning() -> None:
    model = OverNumbers()
    calls = [(torch.rand(3, 6, 2), torch.tensor([3, 6, 1])), (torch.rand(2, 4, 2), torch.tensor([4, 2]))]
    assert agrees(healed(bound(model, calls[0], {0: {0: "batch", 1: "length"}, 1: {0: "batch"}})), model, *calls)


class UntilItSettles(nn.Module):
    """`new` has no value before the loop, and is what comes out of it."""

    def forward(self, x):
        z, rounds = torch.zeros_like(x), 0
        while True:
            new = torch.tanh(z * 0.5 + x)
            rounds += 1
            if torch.norm(new - z) < 1e-4 or rounds >= 30:
                break
            z = new
        return new


def test_a_name_that_the_loop_makes_is_carried_out_of_it() -> None:
    model = UntilItSettles()
    assert agrees(
        healed(bound(model, (torch.rand(2, 3),), {0: {0: "batch"}})), model, (torch.rand(4, 3) * 9,), (torch.rand(1, 3),)
    )


class Formatted(nn.Module):
    def forward(self, x):
        print(f"at most {x.max():.3f}")
        return x + 1


class Settled(nn.Module):
    """Whether a tensor is large is settled in one place, and used in another."""

    def forward(self, x):
        def scaled(large):
            return x * 2 if large else x.tanh()

        return scaled(bool(x.mean() > 0.5))


@pytest.mark.parametrize("model", [Formatted(), Settled()], ids=lambda m: type(m).__name__)
def test_values_that_python_looks_at_are_dealt_with_where_it_looks(model: nn.Module) -> None:
    step = healed(bound(model, (torch.rand(2, 3),), {0: {0: "batch"}}))
    assert agrees(step, model, (torch.rand(4, 3),), (torch.rand(1, 3) - 3,), (torch.rand(1, 3) + 3,))
