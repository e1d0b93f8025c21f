"""`max(2, n)` of a moving size stays symbolic; a capture that cannot fit shapes together so takes the example's side instead.

MPT cuts its bias by such a number; tests/tasks/test_families.py takes it across.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchferry.capture import strategies
from torchferry.capture.attempt import once


class Padded(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(max(2, x.size(0)))


def captured(name: str) -> Any:
    strategy = next(s for s in strategies.ordered() if s.name == name)
    return once(strategy, Padded(), (torch.randn(5),), ({0: torch.export.Dim("n")},))


@pytest.mark.parametrize(("name", "stays"), [("non-strict", True), ("decided", False)])
def test_the_larger_of_two_sizes_is_decided_only_where_asked(name: str, stays: bool) -> None:
    program = captured(name)
    assert ("sym_max" in str(program.graph)) == stays
    assert program.module()(torch.randn(7)).shape == (7,)
