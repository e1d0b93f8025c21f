"""Loops whose rounds pick one of the model's own parts by a tensor: all parts are in the file, and each round takes its own."""

from __future__ import annotations

import pytest
import torch
from agreement import assert_right_at_each
from torch import nn


class Languages(nn.Module):
    """A head for each row; one of them gives less, which is filled up."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 6), nn.Identity(), nn.Linear(4, 6)])

    def forward(self, x, lang):
        outs = []
        for row, number in zip(x, lang):  # noqa: B905
            y = self.heads[number](row)
            outs.append(y if number != 1 else nn.functional.pad(y, (0, 2)))
        return torch.stack(outs)


class Named(nn.Module):
    """The part has a name before it is called, and the rounds go on from one another."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(4, 4) for _ in range(2))

    def forward(self, x, kind):
        h = torch.zeros(4)
        for t in range(x.size(0)):
            which = int(kind[t])
            cell = self.cells[which]
            h = cell(x[t], h)
        return h


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))

    def forward(self, x, kind):
        return torch.stack([self.experts[kind[i].item()](x[i]) for i in range(x.size(0))])


@pytest.mark.parametrize("model", [Languages, Named, Listed])
def test_each_round_takes_the_part_that_it_picks(model) -> None:
    torch.manual_seed(0)
    most = len(next(iter(model().children())))
    calls = [(torch.randn(n, 4), torch.randint(0, most, (n,))) for n in (3, 5, 2)]
    assert_right_at_each(model(), calls)
