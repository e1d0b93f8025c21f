"""Rounds that a condition skips, and loops that go round no times: what is skipped has no effect, where that matters."""

from __future__ import annotations

import torch
from agreement import assert_right_at_each
from torch import nn


class Centres(nn.Module):
    """A centre without members stays where it is; the mean of nothing would be no number."""

    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.tensor([[-1.0, 0.0], [1.0, 0.0], [9.0, 9.0]]))

    def forward(self, x):
        c = self.centres.clone()
        nearest = (x.unsqueeze(1) - c).abs().sum(-1).argmin(-1)
        for j in range(3):
            members = x[nearest == j]
            if len(members) == 0:
                continue
            c[j] = members.mean(0)
        return c


class Differences(nn.Module):
    """The name of the loop's difference is used again afterwards, for something else."""

    def forward(self, x):
        total = torch.zeros_like(x[:, 0])
        for t in range(1, x.size(1)):
            d = (x[:, t] - x[:, t - 1]).abs()
            total = total + d
        for d in (2.0, 3.0):
            total = total * d
        return total


def test_a_round_over_nothing_that_would_change_something_is_skipped() -> None:
    torch.manual_seed(0)
    assert_right_at_each(Centres(), [(torch.randn(n, 2),) for n in (6, 4)])


def test_a_loop_that_goes_round_no_times_has_no_last_value_to_stumble_over() -> None:
    torch.manual_seed(0)
    assert_right_at_each(Differences(), [(torch.randn(2, n, 3),) for n in (4, 6, 1)])


class LeavesEarly(nn.Module):
    """Gathers what it saw on the way, and works out its result from a name that goes on otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        seen = ()
        for layer in self.layers:
            x = torch.tanh(layer(x))
            seen = (*seen, x.mean())
            if x.abs().mean() < 0.5:
                x = x * 100
                return x + seen[0]
        return x + seen[0]


def test_a_loop_that_returns_early_may_gather_what_it_saw() -> None:
    torch.manual_seed(1)
    assert_right_at_each(LeavesEarly(), [(torch.randn(n, 3) * scale,) for n, scale in ((2, 9.0), (4, 0.01), (3, 1.0))])


class MadeInside(nn.Module):
    """Writes into a tensor that one side of the branch makes for itself."""

    def forward(self, x):
        hit = torch.nonzero(x.sum(-1) > 0).squeeze(1)
        if hit.numel() == 0:
            return x.mean(0)
        out = torch.zeros_like(x)
        out.index_add_(0, hit, x[hit])
        return out.sum(0)


def test_a_side_of_a_branch_may_write_into_what_it_made_itself() -> None:
    torch.manual_seed(0)
    assert_right_at_each(MadeInside(), [(torch.randn(3, 2),), (-torch.rand(4, 2),)])


class Chunked(nn.Module):
    """Python's own max and min of the step's number, in the body of the loop."""

    def forward(self, x):
        size = x.shape[0]
        seen = torch.zeros(size, size, dtype=torch.bool)
        for i in range(size):
            first = max((i // 2 - 1) * 2, 0)
            seen[i, first : min((i // 2 + 1) * 2, size)] = True
        return seen.float() @ x


def test_a_loop_may_take_the_larger_of_its_number_and_another() -> None:
    assert_right_at_each(Chunked(), [(torch.randn(n, 2),) for n in (5, 8)])


class Table(nn.Module):
    """Two loops over sizes that move, one in the other, that fill a table element by element."""

    def forward(self, x, y):
        table = torch.zeros(x.shape[0] + 1, y.shape[0] + 1)
        for i in range(1, x.shape[0] + 1):
            for j in range(1, y.shape[0] + 1):
                best = torch.maximum(table[i - 1, j], table[i, j - 1])
                table[i, j] = torch.maximum(best, table[i - 1, j - 1] + x[i - 1] * y[j - 1])
        return table[-1, -1]


def test_loops_in_one_another_may_fill_a_table() -> None:
    torch.manual_seed(0)
    assert_right_at_each(Table(), [(torch.randn(n), torch.randn(m)) for n, m in ((3, 4), (5, 2))])
