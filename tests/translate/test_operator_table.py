"""Every operator of the table against eager: in its dtypes, at the example's sizes, at others, at 1 and at nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.translate.awkward_table import AWKWARD
from tests.translate.made import run, through_capture
from tests.translate.operator_table import DTYPES, FACTORS, TABLE, Row

ALLOWED = {torch.float16: 1e-2, torch.float32: 1e-4, torch.float64: 1e-9}


def listed(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple | list) else [result]


def check(row: Row, dtype: torch.dtype, folder: Path) -> None:
    """Assert that the file gives what eager gives at all of the row's sizes that eager takes."""
    first, *others = row.sizes
    step = through_capture(row.call, row.make(*first, dtype), folder, row.axes)
    assert step.fault is None, (step.fault, step.findings)
    for size in (first, *others):
        args = row.make(*size, dtype)
        try:
            wanted = listed(row.call(*args))
        except (RuntimeError, IndexError):
            assert size in others, "eager takes the example"
            continue
        for index, (have, want) in enumerate(zip(run(step.value.path, args), wanted, strict=True)):
            allowed = ALLOWED.get(want.dtype, 0.0)
            torch.testing.assert_close(
                torch.tensor(np.array(have)),
                want,
                rtol=allowed,
                atol=allowed,
                equal_nan=True,
                msg=lambda text, at=(index, size): f"result {at[0]} at sizes {at[1]}: {text}",
            )


ALL = {**TABLE, **AWKWARD}


@pytest.mark.parametrize("name", ALL)
def test_an_operator_agrees_with_eager_in_its_first_dtype(name: str, tmp_path: Path) -> None:
    check(ALL[name], DTYPES[ALL[name].dtypes[0]], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, letter) for name, row in ALL.items() for letter in row.dtypes[1:]], ids=lambda v: v
)
def test_an_operator_agrees_with_eager_in_its_other_dtypes(name: str, dtype: str, tmp_path: Path) -> None:
    check(ALL[name], DTYPES[dtype], tmp_path)


@pytest.mark.slow
def test_factors_of_complex_matrices_agree_with_eager(tmp_path: Path) -> None:
    check(FACTORS, torch.float32, tmp_path)
