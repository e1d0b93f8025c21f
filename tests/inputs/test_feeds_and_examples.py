"""The user's own arguments become feeds; what the file fixed is refused in words; examples show what varies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from torchferry.errors import FeedError
from torchferry.inputs import bind
from torchferry.records import Bound, Case, Job, Step
from torchferry.records.findings import ExampleDoesNotFit

X = torch.randn(3, 4)


@dataclass
class Batch:
    x: torch.Tensor
    weights: torch.Tensor | None = None


def model(batch: Batch, items: list[torch.Tensor], n: int = 3, mode: str = "sum") -> torch.Tensor:
    return (batch.x + items[0] + items[1]) * n if mode == "sum" else batch.x


def step(job: Job) -> Step:
    answer = bind(Case(job))
    assert answer.fault is None, answer.fault
    return answer


def bound() -> Bound:
    return step(Job(model, (Batch(X), [X, X], 3), ranges={"batch_size": (1, 8)})).value


def test_feeds_are_arrays_by_the_names_of_the_file() -> None:
    other = torch.randn(5, 4)
    feeds = bound().feeds((Batch(other), [other, other], 3), {})
    assert list(feeds) == ["batch.x", "items.0", "items.1"]
    assert all(isinstance(a, np.ndarray) and a.shape == (5, 4) for a in feeds.values())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((Batch(X), [X, X], 7), "`n=3` is fixed in the file; got 7"),
        ((Batch(X), [X, X], 3, "mean"), "`mode` is not an input of the file"),
        ((Batch(X), [X], 3), "`items` has 1 items, but the file was made for 2"),
        ((Batch(X), [X, X, X], 3), "`items.2` is not an input"),
        ((Batch(X, X), [X, X], 3), "`batch.weights=None` is fixed in the file"),
        ((Batch(X), [X, None], 3), "`items.1` must be a tensor of float32"),
        ((Batch(X.double()), [X, X], 3), "`batch.x` must be float32; got float64"),
        ((Batch(X[0]), [X, X], 3), "`batch.x` must have 2 axes [batch_size, length]; got 1: [4]"),
        ((Batch(X), [X[:2], X], 3), "they must be equal"),
        ((Batch(torch.randn(9, 4)), [torch.randn(9, 4)] * 2, 3), "has 9 at axis 0, outside of batch_size = 1..8"),
        ((), "nothing was given to feed; the file takes batch.x, items.0, items.1"),
    ],
)
def test_what_the_file_cannot_take_is_refused_in_words(args: Any, words: str) -> None:
    with pytest.raises(FeedError) as raised:
        bound().feeds(args, {})
    assert words in str(raised.value)


def test_narrow_integers_are_widened_and_bfloat16_is_kept() -> None:
    ids = step(Job(lambda ids: ids + 1, (torch.arange(4),))).value
    assert ids.feeds((torch.arange(4, dtype=torch.int32),), {})["ids"].dtype == np.int64
    half = step(Job(lambda x: x * 2, (X.bfloat16(),))).value
    fed = half.feeds((X.bfloat16(),), {})["x"]
    assert fed.dtype == ml_dtypes.bfloat16
    assert np.array_equal(fed.astype(np.float32), X.bfloat16().float().numpy())


def test_a_number_that_varies_between_examples_becomes_an_input() -> None:
    answer = step(Job(lambda x, n, f, flag: x[:n] * f, (X, 2, 0.5, True), examples=(((X, 3, 0.25, True), {}),)))
    found = answer.value
    assert [(s.name, s.dtype, s.shape) for s in found.signature.inputs][1:] == [("n", "int64", ()), ("f", "float32", ())]
    assert found.signature.fixed == {"flag": "True"}
    assert [int(e[1]) for e in found.examples] == [3]
    assert found.feeds((X, 1, 2.0, True), {})["n"] == 1


@pytest.mark.parametrize(
    ("first", "second", "argument"),
    [
        ((X,), (X[0],), "x"),
        ((X,), (X.double(),), "x"),
        ((X, "sum"), (X, "mean"), "mode"),
        ((X, "sum", None), (X, "sum", X), "extra"),
    ],
    ids=["axes", "dtype", "text", "none"],
)
def test_an_example_that_the_file_cannot_take_ends_the_work_before_sizes_are_tried(
    first: Any, second: Any, argument: str, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"  # what it would count in memory is put back

    def model(x: torch.Tensor, mode: str = "sum", extra: Any = None) -> torch.Tensor:
        with calls.open("a") as file:
            file.write("1")
        return x.relu()

    answer = bind(Case(Job(model, first, examples=((second, {}),))))
    assert answer.fault is not None
    assert calls.read_text() == "1"
    (finding,) = [f for f in answer.findings if isinstance(f, ExampleDoesNotFit)]
    assert finding.argument == argument
    assert finding.example == 2


def test_an_example_whose_meaning_changes_when_widened_is_a_finding() -> None:
    wraps = Job(lambda x: x * 100, (torch.tensor([1, 2]),), examples=(((torch.tensor([1, 2], dtype=torch.int8),), {}),))
    same = Job(lambda i: X[i], (torch.tensor([1, 2]),), examples=(((torch.tensor([1, 0], dtype=torch.int32),), {}),))
    assert [type(f) for f in bind(Case(wraps)).findings] == [ExampleDoesNotFit]
    assert [type(f) for f in step(same).findings] == []


def test_axes_that_differ_between_examples_are_asked_for() -> None:
    found = step(Job(lambda x: x * 2, (X,), examples=(((torch.randn(5, 4),), {}),))).value
    assert {d.name: d.asked for d in found.signature.dims} == {"batch_size": True, "length": False}
