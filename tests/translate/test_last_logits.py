"""Logits of the last tokens alone: an optional input, that changes nothing for who leaves it out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.translate.made import agree

from torchferry.edits.translate import LastLogits
from torchferry.foreign import onnxruntime as ort

HEAD = torch.randn((8, 11), generator=torch.Generator().manual_seed(0))
HIDDEN = torch.randn((2, 5, 8), generator=torch.Generator().manual_seed(1))


def plain(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) @ HEAD


def bounded(x: torch.Tensor) -> torch.Tensor:
    """A head with a bias, whose logits are bounded."""
    return torch.tanh((x @ HEAD + torch.arange(11.0)) / 30.0) * 30.0


def session(function: Callable[..., Any], place: Path) -> Any:
    made = agree(function, (HIDDEN,), place, axes=({0: "batch", 1: "length"},), edits=(LastLogits(),))
    assert [spec.name for spec in made.inputs] == ["x0"], "what is optional is not among what must be fed"
    return ort.session(made.path)


@pytest.mark.parametrize("function", [plain, bounded])
def test_as_many_of_the_last_as_asked_for_are_given(function: Callable[..., Any], tmp_path: Path) -> None:
    opened = session(function, tmp_path)
    for kept in (0, 1, 3, 5, 9):
        (got,) = opened.run(None, {"x0": HIDDEN.numpy(), "logits_to_keep": np.array([kept])})
        np.testing.assert_allclose(got, function(HIDDEN)[:, -kept:].numpy(), rtol=1e-5, atol=1e-5)
    assert opened.get_outputs()[0].shape[:2] == ["batch", "length"], "by default, as long as the text"


def with_neighbours(x: torch.Tensor) -> torch.Tensor:
    """Logits in which every token sees its neighbour's."""
    return torch.cumsum(x @ HEAD, 1)


def by_token(x: torch.Tensor) -> torch.Tensor:
    """Logits with something added that is another for each token."""
    return x @ HEAD + x.sum(-1, keepdim=True)


def by_place(x: torch.Tensor) -> torch.Tensor:
    """Likewise, by its place."""
    return x @ HEAD + torch.arange(x.shape[1])[:, None]


def wanted_twice(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    logits = x @ HEAD
    return torch.tanh(logits), logits


@pytest.mark.parametrize("function", [with_neighbours, by_token, by_place, wanted_twice])
def test_logits_that_are_more_than_a_product_are_left_alone(function: Callable[..., Any], tmp_path: Path) -> None:
    assert not session(function, tmp_path).get_overridable_initializers()
