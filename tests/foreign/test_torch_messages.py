"""What torch says of models that it refuses, provoked, and read as the door reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from torchferry.foreign import torch_messages as door


def raised(call: Callable[[], Any]) -> tuple[str, str]:
    """Return the class and the words of what a call raises, and of what that came from."""
    with pytest.raises(Exception) as told:  # noqa: PT011
        call()
    error: BaseException | None = told.value
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return type(told.value).__name__, "\n".join(texts)


class Fixes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(4, -1)[:, : int(x.shape[1] // x.shape[1])] + x.sum() if x.shape[0] == 4 else x


class Asks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(y: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return y + 1

        return torch.cond(x.sum() > 0, more, torch.sin, (x,))


def without_gradients() -> None:
    with torch.no_grad():
        x = torch.ones(2).requires_grad_()
        torch.autograd.grad(x.sum(), x)


@torch.jit.script
def scripted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


def test_a_gradient_that_was_not_recorded() -> None:
    assert door.needs_gradients(raised(without_gradients)[1])


def test_a_size_that_was_fixed() -> None:
    name, text = raised(lambda: export(Fixes(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n"), 1: None},), strict=False))
    assert door.fixes_a_size(text)
    assert not door.needs_values(name, text)


def test_a_value_that_was_asked_for() -> None:
    name, text = raised(lambda: export(Asks(), (torch.ones(4),), strict=False))
    assert door.needs_values(name, text)
    assert not door.fixes_a_size(text)


def test_an_attribute_that_the_side_of_a_branch_changes() -> None:
    text = raised(lambda: export(Counts(), (torch.ones(4),), strict=False))[1]
    assert door.changed_attribute(text) == "calls"


def test_an_index_past_the_rows_of_a_table() -> None:
    assert door.past_the_rows(raised(lambda: nn.Embedding(3, 2)(torch.tensor([5])))[1])


@pytest.mark.parametrize("layer", [nn.Conv1d(3, 2, 1), nn.Conv2d(3, 2, 1), nn.ConvTranspose1d(3, 2, 1)])
def test_another_number_of_channels(layer: nn.Module) -> None:
    sizes = (1, 4, 5, 5) if isinstance(layer, nn.Conv2d) else (1, 4, 5)
    assert door.wants_channels(raised(lambda: layer(torch.ones(sizes)))[1])


def test_the_line_that_tells_what_was_wrong() -> None:
    assert "mat1 and mat2" in door.telling_line(raised(lambda: scripted(torch.ones(2, 3), torch.ones(2, 3)))[1])
    assert door.telling_line("\nfirst\nsecond") == "first"


def test_words_of_others_tell_nothing() -> None:
    text = "ValueError: no such thing"
    assert door.changed_attribute(text) is None
    asked = (door.needs_gradients, door.fixes_a_size, door.past_the_rows, door.wants_channels)
    assert not any(ask(text) for ask in asked)
    assert not door.needs_values("ValueError", text)
