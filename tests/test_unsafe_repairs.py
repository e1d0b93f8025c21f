"""A repair that changes what is promised is made only when it is asked for, and says what changes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchferry
from torchferry.errors import ExportError


class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def test_an_unsafe_repair_is_off_by_default() -> None:
    with pytest.raises(ExportError) as failed:
        torchferry.export(Noisy().eval(), (torch.randn(2, 4),))
    assert failed.value.result.repairs == ()
    assert [d.code for d in failed.value.result.diagnoses if d.severity == "error"] == ["NUM006"]


def test_an_unsafe_repair_that_is_asked_for_says_what_changes() -> None:
    result = torchferry.export(Noisy().eval(), (torch.randn(2, 4),), repair="unsafe")
    (made,) = result.repairs
    assert result.ok
    assert (made.safety, made.changes) == ("unsafe", "the values of random outputs are not verified")
    assert " ".join(f"(unsafe: {made.changes})".split()) in " ".join(str(result).split())
