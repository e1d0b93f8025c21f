"""Source repairs: what Python decides on values or lengths ends up in the graph, and means the same."""

from __future__ import annotations

import ast

import torch
from bound import agrees, bound, captured, healed
from torch import nn

from torchferry.capture.rewrites import conditions, diff
from torchferry.edits.capture import Rewrite
from torchferry.records.findings import DataDependent, RewritesFound

up, down = torch.rand(3, 4) + 1, torch.rand(5, 4) - 3
BATCH = {0: {0: "batch"}}


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hot, self.cold = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        # which layer, depends on the mean
        if x.mean() > 0.25:
            y = self.hot(x).relu()
        elif x.mean() > -1:
            y = x
        else:
            y = self.cold(x)
        return y + 1


class EarlyReturn(nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return {"y": x, "n": x.sum(1)}
        x = x * 2
        return {"y": x, "n": x.mean(1)}


class Checked(nn.Module):
    def forward(self, x):
        assert torch.isfinite(x).all()
        if x.max().item() > 1e6:
            raise ValueError("too large")
        scale = 2.0 if x.max() > 1 else 0.5
        return x * scale


class Steps(nn.Module):
    def forward(self, x):
        state, seen = torch.zeros(x.size(0)), []
        for t in range(x.size(1)):
            state = torch.tanh(0.5 * state + x[:, t])
            seen.append(state)
        return torch.stack(seen, 1)


class Converged(nn.Module):
    def forward(self, x):
        z, change, count = torch.zeros_like(x), torch.tensor(1.0), 0
        while change > 1e-3 and count < 50:
            new = torch.tanh(z * 0.5 + x)
            change = (new - z).abs().max()
            z = new
            count += 1
        return z


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

    def forward(self, x, task):
        head = self.heads[int(task)]
        return head(x)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
            if x.abs().max() < 0.5:
                break
        return x


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == k)
            if rows.numel() == 0: continue  # noqa: E701  # fmt: skip
            out[rows] += weights[rows, slot, None] * expert(x[rows])
        return out


class OneLine(nn.Module):
    def forward(self, x):
        if x.mean() > 0.25: x = x * 2  # noqa: E701  # fmt: skip
        return x + 1


def test_a_chain_of_branches_on_values_keeps_every_side() -> None:
    model = Gate().eval()
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up,), (down,), (down + 2.5,))


def test_sides_that_return_different_things_take_the_rest_along() -> None:
    model = EarlyReturn().eval()
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up,), (down,))


def test_checks_are_dropped_and_conditional_expressions_chosen_in_the_graph() -> None:
    model = Checked().eval()
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up,), (down,))


def test_a_loop_over_a_moving_length_becomes_a_scan() -> None:
    model = Steps().eval()
    step = healed(bound(model, (torch.rand(2, 5),), {0: {0: "batch", 1: "length"}}))
    assert agrees(step, model, (torch.rand(2, 5),), (torch.rand(3, 9),), (torch.rand(1, 2),))


def test_a_loop_until_convergence_becomes_a_while_loop() -> None:
    model = Converged().eval()
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up,), (down * 0.01,))


def test_a_lookup_by_a_tensor_tries_every_item() -> None:
    model = Heads().eval()
    step = healed(bound(model, (up, torch.tensor(1)), BATCH))
    assert agrees(step, model, *[(down, torch.tensor(k)) for k in (0, 1, 2, -1)])


def test_an_early_exit_leaves_later_layers_without_effect() -> None:
    model = Layers().eval()
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up * 9,), (down * 0.01,))


def test_a_round_that_is_skipped_when_there_is_nothing_to_do_is_not_skipped() -> None:
    model = Experts().eval()
    step = captured(bound(model, (up,), BATCH))
    sites = next(f for f in step.findings if isinstance(f, RewritesFound)).sites
    assert [(s.kind, s.how) for s in sites] == [("exit", "drop")]
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up,), (down,), (down[:1],))


def test_a_branch_in_one_line_is_a_branch() -> None:
    model = OneLine().eval()
    assert agrees(healed(bound(model, (up,), BATCH)), model, (up,), (down,))


def test_an_exit_on_an_empty_tensor_is_known_by_its_look() -> None:
    asks = ("i.numel() == 0", "not len(i)", "i.shape[0] < 1", "i.size(0) <= 0")
    assert all(conditions.is_emptiness(ast.parse(text, mode="eval").body) for text in asks)
    others = ("i.numel() == 1", "i.sum() == 0", "i.numel() < n", "i == 0", "len(i) > 0")
    assert not any(conditions.is_emptiness(ast.parse(text, mode="eval").body) for text in others)


def test_the_finding_is_at_the_line_of_the_branch() -> None:
    step = captured(bound(Gate().eval(), (up,), BATCH))
    found = next(f for f in step.findings if isinstance(f, DataDependent))
    assert found.location is not None
    assert found.location.file == __file__
    assert found.code == "if x.mean() > 0.25:"


def test_the_patch_keeps_comments_and_untouched_lines() -> None:
    step = captured(bound(Gate().eval(), (up,), BATCH))
    sites = next(f for f in step.findings if isinstance(f, RewritesFound)).sites
    text = diff([Rewrite(sites)])
    assert "+        y, = torch.cond(" in text.replace("(y,) =", "y, =")
    assert "-        # which layer, depends on the mean" not in text
    assert "         return y + 1" in text


def test_the_user_s_functions_are_as_before() -> None:
    before = Gate.forward.__code__
    healed(bound(Gate().eval(), (up,), BATCH))
    assert Gate.forward.__code__ is before


def test_no_patch_without_rewrites() -> None:
    assert diff(()) == ""
