"""What the user asks to move moves, under the names given, with what is tied to it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchferry.inputs import bind
from torchferry.records import Bound, Case, Job, Size

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


def test_a_range_beyond_the_model_is_a_finding() -> None:
    class Positions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wpe = torch.nn.Embedding(16, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.wpe(torch.arange(x.shape[1]))

    step = bind(Case(Job(Positions().eval(), (torch.randn(2, 5, 4),), ranges={"sequence_length": (1, 64)})))
    (finding,) = step.findings
    assert finding.kind == "range-beyond-model"
    assert finding.facts["model"] == [1, 16]


def test_an_axis_that_the_model_fixes_is_a_finding() -> None:
    step = bind(Case(Job(torch.nn.Linear(4, 2).eval(), (torch.rand(2, 4),), dynamic_axes={"input": {1: "f"}})))
    assert [f.kind for f in step.findings] == ["asked-axis-does-not-move"]
