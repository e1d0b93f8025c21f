"""What the user asks to move moves, under the names given, with what is tied to it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchferry.errors import UsageError
from torchferry.inputs import bind
from torchferry.records import Bound, Case, Job, Size
from torchferry.records.findings import AskedAxisDoesNotMove, RangeBeyondModel

Dim = torch.export.Dim


class Masked(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask[:, :, None]


ARGS = (torch.randn(2, 5, 4), torch.ones(2, 5))


def bound(job: Job) -> Bound:
    step = bind(Case(job))
    assert step.fault is None, step.fault
    return step.value


def shapes(job: Job) -> list[tuple[Size, ...]]:
    return [s.shape for s in bound(job).signature.inputs]


@pytest.mark.parametrize(
    "spec",
    [
        {"x": {0: "n", 1: "t"}, "mask": {0: "n", 1: "t"}},
        ({0: "n", 1: "t"}, {0: "n", 1: "t"}),
        (("n", "t", None), ("n", "t")),
        {"x": {0: Dim("n"), 1: Dim("t")}, "mask": {0: Dim("n"), 1: Dim("t")}},
        {"x": {0: "n", 1: "t"}},  # the mask is tied to x, asked or not
    ],
)
def test_dynamic_shapes_are_read_in_every_form(spec: Any) -> None:
    assert shapes(Job(Masked(), ARGS, dynamic_shapes=spec)) == [("n", "t", 4), ("n", "t")]


def test_automatic_dims_get_names() -> None:
    spec = {"x": {0: Dim.AUTO, 1: Dim.DYNAMIC, 2: Dim.STATIC}, "mask": {0: Dim.AUTO, 1: Dim.AUTO}}
    assert shapes(Job(Masked(), ARGS, dynamic_shapes=spec)) == [
        ("batch_size", "sequence_length", 4),
        ("batch_size", "sequence_length"),
    ]


def test_a_dim_with_ends_is_a_range_that_was_asked_for() -> None:
    found = bound(Job(Masked(), ARGS, dynamic_shapes={"x": {1: Dim("t", min=3, max=9)}}))
    (dim,) = found.signature.dims
    assert (dim.name, dim.low, dim.high, dim.asked) == ("t", 3, 9, True)


def test_a_dim_from_two_on_is_a_range_that_was_asked_for() -> None:
    (dim,) = bound(Job(Masked(), ARGS, dynamic_shapes={"x": {1: Dim("t", min=2)}})).signature.dims
    assert (dim.low, dim.asked) == (2, True)


def test_a_number_that_is_asked_to_move_is_an_input() -> None:
    class Shifted(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: int = 0) -> torch.Tensor:
            return x + n

    found = bound(Job(Shifted(), (torch.rand(2, 3),), {"n": 2}, dynamic_shapes={"x": {0: "rows"}, "n": Dim.DYNAMIC}))
    assert [(s.name, s.dtype, s.shape) for s in found.signature.inputs] == [("x", "float32", ("rows", 3)), ("n", "int64", ())]
    assert bound(Job(Shifted(), (torch.rand(2, 3),), {"n": 2})).signature.fixed == {"n": "2"}


def test_two_names_for_sizes_that_must_be_equal_are_refused_in_dynamic_shapes_and_taken_in_dynamic_axes() -> None:
    with pytest.raises(UsageError, match=r"`x\[1\]` \(t\) and `mask\[1\]` \(s\) must be equal in the model; give them one name"):
        bind(Case(Job(Masked(), ARGS, dynamic_shapes={"x": {1: "t"}, "mask": {1: "s"}})))
    assert shapes(Job(Masked(), ARGS, dynamic_axes={"x": {1: "t"}, "mask": {1: "s"}})) == [(2, "t", 4), (2, "t")]


@pytest.mark.parametrize("span", ["all", 5, (1,), (1, 2, 3), ("1", 4), (4, 1), (-1, 3), (True, 3)])
def test_what_is_no_range_is_refused_before_anything_is_run(span: Any) -> None:
    class Never(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise AssertionError("called")

    with pytest.raises(UsageError, match=r"ranges\['n'\] must be|the range of `n` is empty"):
        bind(Case(Job(Never(), (torch.rand(2),), ranges={"n": span})))


def test_nothing_moves_when_asked_so() -> None:
    assert shapes(Job(Masked(), ARGS, dynamic_shapes="none")) == [(2, 5, 4), (2, 5)]


def test_only_what_was_asked_for_moves() -> None:
    assert shapes(Job(Masked(), ARGS, dynamic_axes={"x": {0: "n"}})) == [("n", 5, 4), ("n", 5)]


def test_axes_without_names_get_some() -> None:
    assert shapes(Job(Masked(), ARGS, dynamic_axes={"x": [0]})) == [("batch_size", 5, 4), ("batch_size", 5)]


def test_keys_of_dynamic_axes_that_are_no_parameters_go_by_position() -> None:
    class Picture(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return self.conv(pixels).relu()

    axes = {"input": {0: "batch"}, "output": {0: "batch"}}
    found = bound(Job(Picture().eval(), (torch.randn(1, 3, 8, 8),), dynamic_axes=axes))
    assert [(s.name, s.shape) for s in found.signature.inputs] == [("input", ("batch", 3, 8, 8))]
    assert found.outputs == ("output",)


def test_sizes_may_be_expressions_over_dims() -> None:
    class Cached(torch.nn.Module):
        def forward(self, ids: torch.Tensor, mask: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
            return torch.cat([past, ids], 1) * mask

    args = (torch.randn(2, 3), torch.ones(2, 7), torch.randn(2, 4))
    spec = ({0: "batch", 1: "new"}, {0: "batch", 1: "past + new"}, {0: "batch", 1: "past"})
    found = bound(Job(Cached(), args, dynamic_shapes=spec, ranges={"past": (0, None)}))
    assert [s.shape for s in found.signature.inputs] == [("batch", "new"), ("batch", "past + new"), ("batch", "past")]
    past = found.signature.dim("past")
    assert past is not None
    assert past.low == 0
    assert [tuple(t.shape) for t in found.vary({"past": 0, "new": 2})] == [(2, 2), (2, 2), (2, 0)]


@pytest.mark.parametrize("size", ["2*a", "a + b", "None", "class", "\u00e9"])
def test_a_size_may_be_called_anything(size: str) -> None:
    found = bound(Job(torch.nn.ReLU(), (torch.randn(4, 3),), dynamic_shapes=({0: size},)))
    (spec,) = found.signature.inputs
    assert [tuple(t.shape) for t in found.vary({str(spec.shape[0]): 6})] == [(6, 3)]


def test_a_range_beyond_the_model_is_a_finding() -> None:
    class Positions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wpe = torch.nn.Embedding(16, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.wpe(torch.arange(x.shape[1]))

    step = bind(Case(Job(Positions().eval(), (torch.randn(2, 5, 4),), ranges={"sequence_length": (1, 64)})))
    (finding,) = step.findings
    assert isinstance(finding, RangeBeyondModel)
    assert finding.model == (1, 16)


def test_an_axis_that_the_model_fixes_is_a_finding() -> None:
    step = bind(Case(Job(torch.nn.Linear(4, 2).eval(), (torch.rand(2, 4),), dynamic_axes={"input": {1: "f"}})))
    assert [type(f) for f in step.findings] == [AskedAxisDoesNotMove]
