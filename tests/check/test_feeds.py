"""Feeds are made to fit where nothing is lost, and refused in words where something would be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from torchferry.check.running.feeds import Declared, fit
from torchferry.records.findings import (
    FeedBfloat16,
    FeedByteOrder,
    FeedDtype,
    FeedFinding,
    FeedMissingRefused,
    FeedName,
    FeedNotAnArray,
    FeedRank,
)

FLOATS = Declared("x", "tensor(float)", ("N", 3))
IDS = Declared("ids", "tensor(int64)", ("N", "L"))
SHORT = Declared("n", "tensor(int32)", ("N",))
FLAG = Declared("keep", "tensor(bool)", ("N",))


@pytest.mark.parametrize(
    ("spec", "value", "kinds"),
    [
        (FLOATS, np.ones((2, 3)), {FeedDtype}),
        (FLOATS, ((1.0, 2.0, 3.0),), {FeedNotAnArray}),
        (FLOATS, [[1, 2, 3]], set()),
        (FLOATS, torch.ones(2, 3, requires_grad=True), {FeedNotAnArray}),
        (FLOATS, torch.ones(2, 3).bfloat16(), {FeedNotAnArray, FeedDtype}),
        (FLOATS, np.ones((2, 3), ">f4"), {FeedByteOrder}),
        (FLOATS, np.ones((2, 3), ">f8"), {FeedByteOrder, FeedDtype}),
        (FLOATS, np.ones(3, np.float32), {FeedRank}),
        (FLOATS, np.array([[1, 2.5, 3]], object), {FeedNotAnArray, FeedDtype}),
        (FLOATS, np.ones((2, 3), np.uint8), {FeedDtype}),
        (FLOATS, np.ones((3, 2), np.float32).T, set()),
        (IDS, np.ones((1, 2), np.int32), {FeedDtype}),
        (IDS, [5, 6], {FeedRank}),
        (SHORT, np.ones(2, np.int64), {FeedDtype}),
        (FLAG, np.array([0, 1]), {FeedDtype}),
        (Declared("k", "tensor(float)", ()), np.float32(2), {FeedNotAnArray}),
        (Declared("k", "tensor(float)", ()), np.ones(1, np.float32), set()),
        (Declared("b", "tensor(bfloat16)", ("N",)), np.ones(2, ml_dtypes.bfloat16), {FeedBfloat16}),
        (Declared("t", "tensor(string)", ("N",)), np.array(["a"]), set()),
        (Declared("image", "tensor(float)", ("N", 1, 8, 8)), np.ones((5, 8, 8), np.float32), {FeedRank}),
    ],
)
def test_what_loses_nothing_is_coerced(spec: Declared, value: Any, kinds: set[type[FeedFinding]]) -> None:
    fitted = fit((spec,), {spec.name: value})
    assert not fitted.refusals
    assert {c.kind for c in fitted.changes if c.announced} == kinds
    if spec.shape:
        assert fitted.feed[spec.name].ndim == len(spec.shape)


@pytest.mark.parametrize(
    ("spec", "value", "word"),
    [
        (IDS, np.array([[0.0, 1.0]]), "fractions"),
        (IDS, [[0.5]], "fractions"),
        (SHORT, np.array([2**40]), "1099511627776"),
        (FLOATS, np.full((1, 3), 1e300), "beyond its range"),
        (FLOATS, np.full((1, 3), 2**24 + 1), "16777217"),
        (FLOATS, np.ones((1, 3), complex), "imaginary"),
        (FLOATS, np.ones((2, 3, 4), np.float32), "rank"),
        (FLOATS, None, "None"),
        (FLOATS, [[1, 2], [3]], "array"),
        (FLOATS, np.array([["a", "b", "c"]]), "text"),
        (FLAG, np.array([0, 2]), "2"),
    ],
)
def test_what_would_lose_something_is_refused_by_name(spec: Declared, value: Any, word: str) -> None:
    fitted = fit((spec,), {spec.name: value})
    assert [r.input for r in fitted.refusals] == [spec.name]
    assert word in fitted.refusals[0].words
    assert spec.name not in fitted.feed


def test_a_single_unknown_key_is_the_single_missing_input() -> None:
    fitted = fit((FLOATS, IDS), {"ids": np.ones((1, 2), np.int64), "input": np.ones((2, 3), np.float32)})
    assert set(fitted.feed) == {"x", "ids"}
    assert [c.kind for c in fitted.changes] == [FeedName]


def test_a_key_that_does_not_fit_the_missing_input_is_not_taken_for_it() -> None:
    fitted = fit((FLOATS,), {"mask": np.ones((2, 7), np.float32)})
    assert [r.kind for r in fitted.refusals] == [FeedMissingRefused]


def test_names_that_differ_in_punctuation_alone_are_matched() -> None:
    specs = (Declared("input.1", "tensor(float)", ("N",)), Declared("mask", "tensor(float)", ("N",)))
    fitted = fit(specs, {"input_1": np.ones(2, np.float32), "Mask:0": np.zeros(2, np.float32)})
    assert not fitted.refusals
    assert fitted.feed["input.1"][0] == 1


def test_a_name_with_words_before_it_is_matched_where_only_one_ends_so() -> None:
    specs = tuple(Declared(f"serving_default_{n}:0", "tensor(float)", ("N",)) for n in ("x", "w"))
    fitted = fit(specs, {"w": np.ones(2, np.float32), "x": np.zeros(2, np.float32)})
    assert not fitted.refusals
    assert fitted.feed["serving_default_w:0"][0] == 1
    twice = tuple(Declared(n, "tensor(float)", ("N",)) for n in ("left.x", "right.x"))
    assert fit(twice, {"x": np.ones(2, np.float32), "y": np.ones(2, np.float32)}).refusals


def test_an_initializer_may_be_fed_too() -> None:
    fitted = fit((FLOATS,), {"x": np.ones((1, 3), np.float32), "scale": np.ones(1, np.float32)}, optional=("scale",))
    assert set(fitted.feed) == {"x", "scale"}
    assert not fitted.changes


@given(arrays.arrays(st.sampled_from([np.int8, np.int32, np.int64, np.uint8, np.bool_]), (2, 3)))
def test_integers_that_are_coerced_are_the_same_numbers(value: np.ndarray) -> None:
    fitted = fit((FLOATS,), {"x": value})
    if not fitted.refusals:
        assert [int(v) for v in fitted.feed["x"].reshape(-1)] == [int(v) for v in value.reshape(-1)]
