"""What counts as different: shape, dtype, NaN and infinities, values; nothing is broadcast, and no NaN slips through."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from torchferry.records import Tolerance
from torchferry.verify.judge.compare import compare, wrong

STRICT = Tolerance(1e-6, 1e-6, "test")


def what(want: object, got: object, dtype: str = "float32") -> str | None:
    difference, _ = compare("y", np.asarray(want, dtype), np.asarray(got, dtype), STRICT)
    return difference.what if difference else None


def test_equal_outputs_do_not_differ() -> None:
    assert what([1.0, 2.0], [1.0, 2.0]) is None
    assert what([np.nan, np.inf], [np.nan, np.inf]) is None
    assert what(np.zeros((0, 3)), np.zeros((0, 3))) is None


def test_a_shape_is_never_broadcast() -> None:
    assert what([[1.0], [1.0]], [1.0, 1.0]) == "shape"
    assert what(1.0, [1.0]) == "shape"


def test_another_dtype_is_a_difference() -> None:
    difference, _ = compare("y", np.ones(2, np.float32), np.ones(2, np.float64), STRICT)
    assert difference is not None
    assert difference.what == "dtype"


def test_nan_on_either_side_alone_is_a_difference() -> None:
    assert what([1.0, np.nan], [1.0, 2.0]) == "nan"
    assert what([1.0, 2.0], [1.0, np.nan]) == "nan"


def test_infinities_of_other_sign_or_place_are_a_difference() -> None:
    assert what([np.inf], [1e30]) == "inf"
    assert what([np.inf], [-np.inf]) is not None


def test_values_are_judged_against_the_allowance() -> None:
    assert what([1.0], [1.0 + 1e-6]) is None
    assert what([1.0], [1.0 + 1e-5]) == "value"


def test_integers_must_be_equal() -> None:
    assert what([1, 2], [1, 3], "int64") == "value"
    assert what([True], [False], "bool") == "value"
    assert what([2**62 + 1], [2**62], "int64") == "value"


def test_bfloat16_is_compared_as_numbers() -> None:
    want, got = np.asarray([1.0, 2.0], ml_dtypes.bfloat16), np.asarray([1.0, 3.0], ml_dtypes.bfloat16)
    difference, _ = compare("y", want, got, STRICT)
    assert difference is not None
    assert difference.max_abs == 1.0


def test_the_place_of_the_worst_difference_is_told() -> None:
    difference, ratio = compare("y", np.zeros((2, 3), np.float32), np.eye(2, 3, 1, dtype=np.float32), STRICT)
    assert difference is not None
    assert difference.at == (0, 1)
    assert ratio > 1
    assert wrong(np.zeros(2), np.asarray([0.0, 1.0]), STRICT).tolist() == [False, True]
