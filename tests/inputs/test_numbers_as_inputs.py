"""Python numbers that differ between the examples are inputs of the file; what cannot be one is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import torchferry

X = torch.linspace(-1, 1, 12).reshape(2, 6)


def scaled(x: torch.Tensor, n: float) -> torch.Tensor:
    return x * n


def first(x: torch.Tensor, n: int) -> torch.Tensor:
    return x[:, :n].sum(1)


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    return torch.topk(x, k).values


def limited(x: torch.Tensor, end: float) -> torch.Tensor:
    return torch.clamp(x, -end, end)


def turned(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return torch.where(torch.as_tensor(flag), x, -x)


def branching(x: torch.Tensor, flag: bool) -> torch.Tensor:
    if flag:
        return torch.relu(x)
    return x


@pytest.mark.parametrize(
    ("model", "one", "two", "dtype"),
    [
        (scaled, 3, 5, "int64"),
        (scaled, 0.5, 2.5, "float32"),
        (scaled, 3, 2.5, "float32"),
        (scaled, True, 4, "int64"),
        (first, 3, 5, "int64"),
        (largest, 2, 4, "int64"),
        (limited, 0.25, 0.5, "float32"),
        (turned, True, False, "bool"),
        (branching, True, False, "bool"),
    ],
    ids=[
        "int",
        "float",
        "int and float",
        "bool and int",
        "int as a size",
        "int as a count",
        "float limit",
        "bool",
        "bool in an if",
    ],
)
def test_a_number_that_differs_between_examples_is_an_input(model: Callable[..., Any], one: Any, two: Any, dtype: str) -> None:
    result = torchferry.export(model, (X, one), examples=[(X, two)])
    assert result.history.best.value("inputs").signature.inputs[1].dtype == dtype
    session = torchferry.InferenceSession(str(result.path))
    for number in (one, two):
        got = session.run(None, result.feeds((X, number)))[0]
        np.testing.assert_allclose(got, model(X, number), rtol=1e-5, atol=1e-6)


def test_a_number_that_stays_the_same_is_fixed_and_another_one_refused() -> None:
    result = torchferry.export(scaled, (X, 3), examples=[(X, 3)])
    assert "n = 3 is fixed in the file" in str(result)
    with pytest.raises(torchferry.FeedError, match="`n=3` is fixed in the file; got 4"):
        result.feeds((X, 4))


def test_an_input_that_counts_takes_no_fraction() -> None:
    result = torchferry.export(first, (X, 3), examples=[(X, 5)])
    with pytest.raises(torchferry.FeedError, match="`n` must be int64; got float32"):
        result.feeds((X, 2.5))


def masked(x: torch.Tensor, mask: torch.Tensor | None = None, mode: str = "sum") -> torch.Tensor:
    x = x if mask is None else x * mask
    return x.sum(1) if mode == "sum" else x.mean(1)


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        ((X,), (X, X), "`mask` is not an input of the file, whose example went without it; the file takes x"),
        ((X, X), (X, None), "`mask` must be a tensor of float32 [2, 6]; got None"),
        ((X, None, "sum"), (X, None, "mean"), "`mode='sum'` is fixed in the file; got 'mean'"),
    ],
    ids=["tensor for nothing", "nothing for a tensor", "text"],
)
def test_what_no_input_can_be_is_refused_in_words(one: Any, two: Any, words: str) -> None:
    result = torchferry.export(masked, one, examples=[two], check=False)
    assert not result.ok
    (error,) = [d for d in result.diagnoses if d.severity == "error"]
    assert error.code == "INP006"
    assert words in error.message
    assert "one file for each choice" in error.help
