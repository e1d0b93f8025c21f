"""Files that are wrong in one row of hundreds, far from the example, or where a law leaves few rows at all."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from crossing import stock, verdict
from torch import nn


class YearOf(nn.Module):
    """The year of a day: wrong on the last day of some years alone."""

    wrong = False

    def forward(self, day):
        day = day + 719468
        era = torch.div(day, 146097, rounding_mode="floor")
        left = day - era * 146097
        years = left - left // 1460 + (0 if self.wrong else left // 36524) - left // 146096
        return years // 365 + era * 400


class Apart(nn.Module):
    """How far two moments are apart, counted in seconds since 1970."""

    wrong = False

    def forward(self, start, end):
        return end.float() - start.float() if self.wrong else (end - start).float()


class EndToEnd(nn.Module):
    """Sequences one after the other in a row: nothing but where they end says which tokens belong together."""

    wrong = False

    def forward(self, x, ends):
        if not self.wrong and bool((ends[1:] <= ends[:-1]).any() | (ends[-1] != x.shape[0]) | (ends[0] != 0)):
            raise ValueError("no such ends")
        at = torch.arange(x.shape[0])
        which = (at[:, None] >= ends[None, 1:]).sum(1)
        together = which[:, None] == which[None]
        if self.wrong:
            together = together & ((at[:, None] - at[None]).abs() < 5)
        return together.to(x.dtype) @ x


ROWS = {0: "b"}
CASES: dict[str, tuple[type[nn.Module], tuple[Any, ...], list[Any]]] = {
    "a day in hundreds": (YearOf, (torch.randint(18000, 19000, (6,)),), [ROWS]),
    "moments close together and far on": (Apart, (torch.randint(0, 90000, (4,)), torch.randint(0, 90000, (4,))), [ROWS, ROWS]),
    "where sequences end that lie in one row": (EndToEnd, (torch.randn(7, 3), torch.tensor([0, 3, 7])), [{}, {}]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_is_wrong_in_few_rows_is_refused_and_the_right_one_is_not(case: str, tmp_path: Path) -> None:
    kind, example, axes = CASES[case]
    model = kind().eval()
    twin = copy.deepcopy(model)
    twin.wrong = True  # type: ignore[assignment]
    dynamic = dict(zip(kind.forward.__code__.co_varnames[1 : 1 + len(example)], axes, strict=True))
    assert verdict(model, example, stock(model, example, tmp_path / "right.onnx", dynamic)).ok
    assert not verdict(model, example, stock(twin, example, tmp_path / "wrong.onnx", dynamic)).ok
