"""What eager decides by is seen: numbers, inputs, sides and tables; in the source and in the file as well."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from crossing import stock
from torch import nn

from torchferry.verify.run.decisions import Decision, watch
from torchferry.verify.trials.constants import Number, for_input, in_file, in_source, numbers
from torchferry.verify.trials.landmarks import handles_nan, landmarks


class Deciding(nn.Module):
    limit = 7.5

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(30.0))
        self.register_buffer("bar", torch.tensor(0.25))
        self.words = nn.Embedding(11, 4)

    def forward(self, x, t, ids):
        kept = torch.where(x > self.bar, x, -x).clamp(-3, 6)
        if x.max().item() > self.limit:
            kept = kept * 2
        picked = kept.argmax(-1)
        return kept * self.table[t + 1][:, None] + self.words(ids % 11).sum(-1) * picked[:, None]


def decided(kind: str, x: torch.Tensor | None = None) -> list[Decision]:
    x = torch.tensor([[0.1, 0.2, 9.0], [0.2, 0.0, -1.0]]) if x is None else x
    seen = watch(Deciding(), (x, torch.tensor([3, 5]), torch.tensor([[1], [2]])))
    return [d for d in seen.decisions.values() if d.kind == kind]


def test_what_is_compared_and_clipped_is_seen_with_its_numbers_inputs_and_sides() -> None:
    (compared,) = decided("compare")
    assert compared.numbers == (0.25,)
    assert compared.inputs == {0}
    assert compared.sides == {"below", "above"}
    assert {d.numbers: d.sides for d in decided("clip")} == {(-3.0,): {"above"}, (6.0,): {"below", "above"}}


def test_what_is_indexed_picked_and_taken_apart_is_seen() -> None:
    assert {(d.length, d.last): d.inputs for d in decided("index")} == {(30, 6): {1}, (11, 2): {2}}
    assert [(d.length, d.sides) for d in decided("pick")] == [(3, {"2"})]
    assert [(d.numbers, d.inputs) for d in decided("digits")] == [((11.0,), {2})]
    assert [d.inputs for d in decided("count")] == [{0}]


def test_a_margin_knows_how_it_came_of_the_inputs() -> None:
    x = torch.full((2, 3), 0.1, requires_grad=True)
    seen = watch(Deciding(), (x, torch.tensor([3, 5]), torch.tensor([[1], [2]])), grad=True)
    margin = next(d.margin for d in seen.decisions.values() if d.kind == "compare")
    assert margin is not None
    (slope,) = torch.autograd.grad(margin.sum(), [x])
    assert torch.equal(slope, torch.ones(2, 3))


def test_a_call_that_eager_refuses_raises_what_it_raises() -> None:
    with pytest.raises(IndexError):
        watch(Deciding(), (torch.zeros(2, 3), torch.tensor([3, 50]), torch.tensor([[1], [2]])))


def test_numbers_come_from_eager_the_source_and_the_file(tmp_path: Path) -> None:
    args = (torch.randn(2, 3), torch.tensor([3, 5]), torch.tensor([[1], [2]]))
    assert 7.5 in set(in_source(Deciding()))  # by the name of an attribute
    graph = onnx.load(stock(Deciding(), args, tmp_path / "m.onnx")).graph
    assert {0.25, -3.0, 6.0} <= set(in_file(graph))
    found = numbers(watch(Deciding(), args).decisions.values(), Deciding(), graph)
    assert found.index(Number(0.25, frozenset({0}))) < found.index(Number(7.5))
    assert 11.0 in for_input(found, 2)
    assert 11.0 not in for_input(found, 0)


def test_lengths_of_tables_and_tests_with_several_numbers_are_landmarks() -> None:
    class Bounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(48, 48))
            self.share = 77.0

        def forward(self, x):
            return x if x.shape[1] * 0.5 > 60 else -x

    assert {48, 77, 120} <= set(landmarks(Bounded()))


def test_a_model_that_looks_for_nan_is_told_by_its_source() -> None:
    class Imputing(nn.Module):
        def forward(self, x):
            return torch.where(x.isnan(), 0.0, x)

    assert handles_nan(Imputing())
    assert not handles_nan(Deciding())
