"""Counts, runs, segments and bags against eager, at the example's sizes and at others."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translate.made import agree

F = torch.nn.functional
ROWS, BOTH = {0: "b"}, {0: "b", 1: "n"}
RUNS = torch.tensor([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [3.0, 3.0, math.nan]])


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def counted(**options: Any) -> Callable[..., Any]:
    return lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, **options)


# torch itself captures histogram, unlike histc, for fixed sizes only
MOVING: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], list[tuple[Any, ...]]]] = {
    "runs": (counted(), (RUNS,), (ROWS,), [(r(5, 3).round(),)]),
    "runs of rows": (counted(dim=0), (RUNS,), (ROWS,), [(RUNS.repeat_interleave(2, 0)[:, :3],)]),
    "runs of integers": (counted(), (torch.tensor([3, 3, 1, 1, 1, 2]),), (ROWS,), [(torch.tensor([5]),)]),
    "counts of numbers": (
        lambda x, y: torch.bincount(x, minlength=y.size(0)) + 0,
        (torch.tensor([3, 1, 1, 0]), r(6, 2)),
        (ROWS, {0: "n"}),
        [(torch.tensor([7, 2]), r(3, 2)), (torch.tensor([], dtype=torch.int64), r(2, 2)), (torch.tensor([0, 0, 1]), r(9, 2))],
    ),
    "sums of weights": (
        lambda x, w: (torch.bincount(x, w), torch.bincount(x, w.double(), minlength=4), torch.bincount(x, w.long())),
        (torch.tensor([3, 1, 1, 0], dtype=torch.int32), r(4)),
        (ROWS, ROWS),
        [(torch.tensor([1, 6, 6], dtype=torch.int32), r(3))],
    ),
    "histogram": (lambda x: torch.histogram(x, 4, range=(-1.0, 1.0)), (r(5, 3),), (), [(r(5, 3) * 2,)]),
    "histogram of the data": (lambda x: torch.histogram(x, 4, density=True), (r(5, 3),), (), [(torch.ones(5, 3),)]),
    "histogram of edges": (
        lambda x, e, w: torch.histogram(x, e, weight=w),
        (r(6), torch.tensor([-1.0, 0.0, 0.3, 2.0]), r(6).abs()),
        (),
        [(r(6) * 2, torch.tensor([-1.0, 0.0, 0.3, 2.0]), r(6))],
    ),
    "histogram of points": (lambda x: torch.histogramdd(x, [2, 3])[0], (r(7, 2),), (), [(r(7, 2) * 2,)]),
    "histc of the data": (lambda x: torch.histc(x, 4), (r(5, 3),), (ROWS,), [(r(8, 3),), (torch.ones(2, 3),)]),
    "nonzero": (torch.nonzero, (torch.tensor([[0.0, 1.0], [2.0, 0.0]]),), (ROWS,), [(torch.zeros(3, 2),)]),
    "nonzero of a number": (torch.nonzero, (torch.tensor(2.0),), ({},), [(torch.tensor(0.0),)]),
    "segments by length": (
        lambda x, n: torch.segment_reduce(x, "mean", lengths=n),
        (r(6, 2), torch.tensor([2, 0, 4])),
        (ROWS, {}),
        [(r(9, 2), torch.tensor([1, 3, 5]))],
    ),
    "segments by offset": (
        lambda x, o: torch.segment_reduce(x, "max", offsets=o, initial=-1.0),
        (r(6, 2), torch.tensor([0, 2, 2, 6])),
        (ROWS, {}),
        [(r(9, 2), torch.tensor([0, 1, 5, 9]))],
    ),
    "bags by offset": (
        lambda w, i, o: F.embedding_bag(i, w, o, mode="mean", padding_idx=1),
        (r(5, 3), torch.tensor([0, 1, 4, 2, 1]), torch.tensor([0, 3, 3])),
        ({}, {0: "i"}, {0: "o"}),
        [(r(5, 3), torch.tensor([4, 4, 1]), torch.tensor([0, 1]))],
    ),
    "largest of bags": (
        lambda w, i, o: F.embedding_bag(i, w, o, mode="max", include_last_offset=True),
        (r(5, 3), torch.tensor([0, 1, 4, 2, 1]), torch.tensor([0, 3, 3, 5])),
        ({}, {0: "i"}, {0: "o"}),
        [(r(5, 3), torch.tensor([4, 4]), torch.tensor([0, 2]))],
    ),
    "bags in rows": (
        lambda w, i, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s),
        (r(5, 3), torch.tensor([[0, 1], [4, 2]]), r(2, 2)),
        ({}, ROWS, ROWS),
        [(r(5, 3), torch.tensor([[0, 1], [4, 4], [3, 3]]), r(3, 2))],
    ),
    "logcumsumexp far from zero": (
        lambda x: x.logcumsumexp(1),
        (torch.tensor([[-1000.0, 1000.0, -math.inf, 3.0]]),),
        (BOTH,),
        [(r(3, 7) * 100,), (torch.tensor([[-math.inf, -math.inf, 0.0]]),)],
    ),
    "a strided view written": (
        lambda x, s: torch.as_strided_scatter(x, s, (2, 2), (3, 1), 1),
        (r(4, 3), r(2, 2)),
        (ROWS, {}),
        [(r(6, 3), r(2, 2))],
    ),
}


@pytest.mark.parametrize("name", MOVING)
def test_it_agrees_at_other_sizes_too(name: str, tmp_path: Path) -> None:
    function, args, axes, others = MOVING[name]
    agree(function, args, tmp_path, axes, others)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.int16, torch.bool], ids=str)
def test_runs_of_any_type(dtype: torch.dtype, tmp_path: Path) -> None:
    agree(counted(), (torch.tensor([1, 1, 0, 0, 1]).to(dtype),), tmp_path)


@pytest.mark.parametrize("first", ["divide", "true_divide", "multiply", "subtract", "greater"])
def test_a_second_name_promotes_types_as_the_first_does(first: str, tmp_path: Path) -> None:
    agree(getattr(torch, first), (r(3), torch.tensor([1, 2, 3])), tmp_path)
