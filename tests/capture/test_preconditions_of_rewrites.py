"""A rewrite that rests on a precondition: made where it holds, refused where it does not."""

from __future__ import annotations

import inspect

import pytest
import torch
from bound import bound
from torch import nn
from torch.nn import functional

import torchferry
from torchferry.capture import unchanged
from torchferry.capture.rewrites.sites import candidates
from torchferry.capture.rewrites.syntax_tree import CannotRewrite


class PadsWhatIsLeftOver(nn.Module):
    def forward(self, x):
        pad = -x.shape[-1] % 4
        if pad:
            x = functional.pad(x, (0, pad))
        return x


class PadsWhatIsLong(nn.Module):
    def forward(self, x):
        pad = 3
        if x.shape[-1] > 5:
            x = functional.pad(x, (0, pad))
        return x


class Counts(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls = self.calls + 1
        return x * 2


class CountsAndReads(Counts):
    def forward(self, x):
        self.calls = self.calls + 1
        return x * self.calls


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))


class EachOnce(Experts):
    def forward(self, x):
        route, out = (x[:, 0] * 3).long(), torch.zeros_like(x)
        for e in route.unique().tolist():
            out = out + self.experts[e](x)
        return out


class SomeTwice(Experts):
    def forward(self, x):
        route, out = (x[:, 0] * 3).long(), torch.zeros_like(x)
        for e in torch.cat([route.unique(), route.unique()]).tolist():
            out = out + self.experts[e](x)
        return out


class InFallingOrder(Experts):
    def forward(self, x):
        route, out = (x[:, 0] * 3).long(), torch.zeros_like(x)
        for e in route.unique().flip(0).tolist():
            out = torch.tanh(self.experts[e](out + x))
        return out


class FromTheEnd(Experts):
    def forward(self, x):
        chosen, out = x[:, :1].argmax(1) - 1, torch.zeros_like(x)
        for e in chosen.unique().tolist():
            out = out + self.experts[e](x)
        return out


CASES = [
    (PadsWhatIsLeftOver, "if pad", "always", True),
    (PadsWhatIsLong, "if x.shape", "always", False),
    (Counts, "self.calls =", "drop", True),
    (CountsAndReads, "self.calls =", "drop", False),
    (EachOnce, "for e in", "items", True),
    (SomeTwice, "for e in", "items", False),
    (InFallingOrder, "for e in", "items", False),
    (FromTheEnd, "for e in", "items", False),
]


@pytest.mark.parametrize(("model", "line", "how", "holds"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_a_rewrite_is_refused_where_its_precondition_does_not_hold(model, line: str, how: str, holds: bool) -> None:
    torch.manual_seed(0)
    given = bound(model(), (torch.rand(5, 4),), {0: {1: "n"}} if "Pads" in model.__name__ else {0: {0: "n"}})
    lines, start = inspect.getsourcelines(model.forward)
    number = start + next(i for i, text in enumerate(lines) if line in text)
    (site,) = [s for s in candidates(given.module, __file__, number) if s.how == how]
    if holds:
        unchanged.check(given, [site])
        return
    with pytest.raises(CannotRewrite, match="something else comes out"):
        unchanged.check(given, [site])


class OfTwoWidths(nn.Module):
    """What the rounds give is as long as the part that each picks, so that no one shape stands for it."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 6), nn.Linear(4, 3)])

    def forward(self, x, lang):
        outs = []
        for row, number in zip(x, lang):  # noqa: B905
            outs.append(self.heads[number](row))
        return torch.cat(outs)


def test_items_that_give_different_shapes_are_not_picked_from() -> None:
    result = torchferry.export(OfTwoWidths().eval(), (torch.randn(3, 4), torch.tensor([0, 1, 0])), check=False)
    assert not result.ok
    assert result.path is None
    assert not result.repairs
