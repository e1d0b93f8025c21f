"""Sizes that hang on values, or on each other: no call can be made up that moves them alone, but the user's examples do."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import torchferry
from torchferry.inputs import bind
from torchferry.records import Bound, Case, Job
from torchferry.records.findings import AskedAxisDoesNotMove, ExampleDoesNotFit


class Parts(nn.Module):
    """Rows in groups, whose sizes are the values of another input."""

    def forward(self, x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        return torch.stack([part.mean(0) for part in torch.split(x, sizes.tolist())])


class Fitted(nn.Module):
    """A picture put into the middle of one that is never smaller."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        high, wide = x.shape[2] - y.shape[2], x.shape[3] - y.shape[3]
        if high > 0 or wide > 0:
            y = nn.functional.pad(y, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        return torch.cat([x, y], 1)


def bound(model: nn.Module, args: tuple[torch.Tensor, ...], *examples: tuple[torch.Tensor, ...]) -> Bound:
    step = bind(Case(Job(model, args, examples=tuple((e, {}) for e in examples))))
    assert isinstance(step.value, Bound), step.fault
    assert [type(f) for f in step.findings] == []
    return step.value


ROWS = (torch.rand(6, 4), torch.tensor([2, 3, 1]))
MORE_ROWS = (torch.rand(10, 4), torch.tensor([5, 1, 4]))


def test_a_size_that_must_be_the_sum_of_values_moves_as_far_as_the_examples_do() -> None:
    found = bound(Parts(), ROWS, MORE_ROWS).signature
    assert [spec.shape for spec in found.inputs] == [("batch_size", "length"), (3,)]
    dim = found.dim("batch_size")
    assert dim is not None
    assert (dim.low, dim.high, dim.asked) == (6, 10, True)
    assert "as the examples show" in dim.why


def test_without_such_examples_it_stays_as_it_is() -> None:
    step = bind(Case(Job(Parts(), ROWS)))
    assert [spec.shape for spec in step.value.signature.inputs] == [(6, "length"), (3,)]


def test_an_example_that_the_model_refuses_moves_nothing() -> None:
    wrong = (torch.rand(9, 4), torch.tensor([5, 1, 4]))
    step = bind(Case(Job(Parts(), ROWS, examples=((wrong, {}),))))
    assert {type(f) for f in step.findings} == {AskedAxisDoesNotMove, ExampleDoesNotFit}


def test_sizes_that_are_equal_in_every_call_are_one_size() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
            return torch.stack([part.mean(0) for part in torch.split(x * y, sizes.tolist())])

    x, sizes = ROWS
    more, others = MORE_ROWS
    shapes = [spec.shape for spec in bound(Two(), (x, x, sizes), (more, more, others)).signature.inputs]
    assert shapes == [("batch_size", "length"), ("batch_size", "length"), (3,)]


def test_a_size_that_ends_where_another_does_crosses_with_the_examples_that_show_it() -> None:
    args = (torch.rand(1, 2, 9, 9), torch.rand(1, 2, 8, 8))
    others = [(torch.rand(1, 2, 12, 15), torch.rand(1, 2, 12, 14)), (torch.rand(2, 2, 8, 8), torch.rand(2, 2, 8, 8))]
    result = torchferry.export(Fitted(), args, examples=others)
    session = torchferry.InferenceSession(str(result.path))
    for call in others:
        np.testing.assert_array_equal(session.run(None, result.feeds(call))[0], Fitted()(*call))


class Remembering(nn.Module):
    """What was kept from calls before this one, and what is new; at first nothing was kept."""

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return torch.cat([memory, x], 1).cumsum(1)


NEW, KEPT, NOTHING = torch.rand(2, 5, 4), torch.rand(2, 3, 4), torch.rand(2, 0, 4)


def test_a_size_that_an_example_shows_at_zero_is_declared_from_zero() -> None:
    for args, examples in (((NEW, KEPT), [(NEW, NOTHING)]), ((NEW, NOTHING), [])):
        found = bound(Remembering(), args, *examples).signature
        dim = found.dim(str(found.inputs[1].shape[1]))
        assert dim is not None
        assert (dim.low, dim.high) == (0, None)
        assert found.inputs[0].shape[1] != dim.name  # the two lengths are not tied


def test_a_size_that_no_example_shows_at_zero_is_declared_from_one() -> None:
    found = bound(Remembering(), (NEW, KEPT)).signature
    assert {dim.low for dim in found.dims} == {1}


def test_a_file_of_an_example_with_nothing_in_it_also_takes_something() -> None:
    result = torchferry.export(Remembering(), (NEW, NOTHING))
    for memory in (NOTHING, KEPT):
        (got,) = torchferry.InferenceSession(str(result.path)).run(None, result.feeds((NEW, memory)))
        np.testing.assert_allclose(got, Remembering()(NEW, memory), rtol=1e-5)
