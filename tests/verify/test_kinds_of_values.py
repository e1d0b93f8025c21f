"""A kind of values that no way makes would be refused at every model, and its trials would be missed by nobody."""

from __future__ import annotations

import pytest

from torchferry.inputs.values.ways import way
from torchferry.records import kinds_of_values as kinds
from torchferry.verify.coverage import redrawn
from torchferry.verify.trials import directed, plans, walk

MADE_ELSEWHERE = {"given", "other-padding"}  # by the user; by `padding_garbage.py`
LISTS = (
    kinds.ORDINARY, kinds.EXTREME, redrawn.PLAIN, plans.PLAUSIBLE, plans.ALONE, directed.NANS, directed.SPECIAL, directed.DECADES,
    directed.WIDE, directed.SMALL, directed.MANY_ALIKE, walk.LAWLESS,
)  # fmt: skip


@pytest.mark.parametrize("values", sorted({name for names in LISTS for name in names} - MADE_ELSEWHERE))
def test_each_kind_that_is_listed_is_one_that_can_be_made(values: str) -> None:
    assert way(values)
    with pytest.raises(ValueError, match="no way to fill"):
        way("x" + values)
