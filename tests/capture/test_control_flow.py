"""Control flow that the user wrote with torch's own operators, and branches whose sides differ in size."""

from __future__ import annotations

import pytest
import torch
from functorch.experimental.control_flow import map as map_rows
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

import torchferry
from torchferry import eager


class Twice(nn.Module):
    """Gives one tensor back in two places, which torch's functionalisation refuses."""

    def forward(self, x):
        def add(carry, row):
            total = carry + row
            return [total, total]

        return torch.ops.higher_order.scan(add, [torch.zeros_like(x[0])], [x], additional_inputs=[])[1]


class Same(nn.Module):
    """One side hands out what it was given."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: x * 2, (x,))


class BranchInLoop(nn.Module):
    """A branch inside a loop hands on what the loop's body made before it, and nothing else looks at that."""

    def forward(self, x):
        def step(t, y):
            z = torch.tanh(y)
            t, y = torch.cond(y.sum() < 3, lambda t, y: (t + 0.3, z.clone()), lambda t, y: (t + 0.2, y.clone()), (t, y))
            return t.clone(), y.clone()

        return torch._higher_order_ops.while_loop(lambda t, y: t < 1.0, step, (torch.tensor(0.0), x.clone()))[1]


class Places(nn.Module):
    """Both sides give the columns of one tensor of places, which share its memory."""

    def forward(self, x):
        def high(x):
            return torch.nonzero(x > 0.5, as_tuple=True)

        def low(x):
            return torch.nonzero(x < 0.1, as_tuple=True)

        return torch.cond(x.sum() > 4, high, low, (x,))


class Mapped(nn.Module):
    def forward(self, x):
        return map_rows(lambda row: row.cumsum(0) + 1, x)


class Padded(nn.Module):
    """Both sides of the branch differ in size."""

    def forward(self, x):
        rest = x.shape[-1] % 4
        if rest != 0:
            x = nn.functional.pad(x, (0, 4 - rest))
        return x.unflatten(-1, (-1, 4)).sum(-1)


class Scored(nn.Module):
    def forward(self, x):
        return flex_attention(x, x, x, score_mod=lambda score, b, h, i, j: score - (i - j).abs())


@pytest.mark.parametrize("model", [Twice(), Same(), Places(), Mapped(), BranchInLoop()], ids=lambda m: type(m).__name__)
def test_loops_and_branches_of_torch_are_converted(model: nn.Module) -> None:
    assert torchferry.export(model, (torch.rand(3, 4),)).ok


@pytest.mark.slow
def test_a_branch_on_a_size_whose_sides_differ_in_size_is_converted() -> None:
    result = torchferry.export(Padded(), (torch.rand(2, 8),), examples=[((torch.rand(2, 6),), {})])
    assert result.ok


@pytest.mark.slow
def test_flex_attention_is_converted_end_to_end() -> None:
    assert torchferry.export(Scored(), (torch.rand(1, 2, 16, 8),)).ok


@pytest.mark.parametrize("model", [Same(), Scored()], ids=lambda m: type(m).__name__)
def test_the_eager_model_is_run_without_dynamo(model: nn.Module) -> None:
    torch._dynamo.reset()
    counted = torch._dynamo.utils.counters["frames"]["total"]
    with eager.plainly(), torch.no_grad():
        for count in (16, 17, 18):
            model(torch.rand(1, 2, count, 8))
    assert torch._dynamo.utils.counters["frames"]["total"] == counted


def test_lazy_modules_are_refused_in_words() -> None:
    with pytest.raises(torchferry.errors.UsageError, match="has no weights yet"):
        torchferry.export(nn.Sequential(nn.LazyLinear(2)), (torch.rand(1, 2),))


def test_made_up_labels_do_not_bring_the_process_down() -> None:
    class Loss(nn.Module):
        def forward(self, x, labels):
            return nn.functional.ctc_loss(x.log_softmax(-1), labels, torch.full((1,), 4), torch.full((1,), 2))

    with pytest.raises(RuntimeError, match="out of range"):
        eager.call_on_made_input(Loss(), (torch.rand(4, 1, 3), torch.tensor([[1, 900000]])))
