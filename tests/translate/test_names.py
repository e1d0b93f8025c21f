"""The file speaks the user's words."""

from __future__ import annotations

from pathlib import Path

import torch
from tests.translate.made import agree


class Joined(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, past: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
        return torch.cat([past, self.layer(now)], 1)


def test_sizes_are_named_and_derived_ones_are_expressions(tmp_path: Path) -> None:
    args = (torch.rand(2, 3, 4), torch.rand(2, 5, 4))
    axes = ({0: "batch_size", 1: "past_length"}, {0: "batch_size", 1: "length"})
    made = agree(Joined(), args, tmp_path, axes, [(torch.rand(1, 2, 4), torch.rand(1, 7, 4))])
    assert made.inputs[0].shape == ("batch_size", "past_length", 4)
    assert made.outputs[0].shape == ("batch_size", "length + past_length", 4)


def test_no_symbol_of_torch_is_left_anywhere(tmp_path: Path) -> None:
    made = agree(lambda x: x[x > 0], (torch.randn(3, 4),), tmp_path, ({0: "rows"},))
    assert made.outputs[0].shape == ("dynamic_0",)


def test_weights_have_the_users_names(tmp_path: Path) -> None:
    made = agree(Joined(), (torch.rand(2, 3, 4), torch.rand(2, 5, 4)), tmp_path)
    assert {"layer.weight", "layer.bias"} <= set(made.model.graph.initializers)


def test_an_input_called_like_a_python_builtin_works(tmp_path: Path) -> None:
    agree(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout()), (torch.rand(2, 3),), tmp_path)


def test_an_output_that_is_an_input_or_another_output_has_a_value_of_its_own(tmp_path: Path) -> None:
    def same(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return x, y, y

    made = agree(same, (torch.rand(2),), tmp_path)
    assert [o.name for o in made.outputs] == ["y0", "y1", "y2"]


def test_every_node_has_a_name_of_its_own(tmp_path: Path) -> None:
    made = agree(Joined(), (torch.rand(2, 3, 4), torch.rand(2, 5, 4)), tmp_path)
    names = [node.name for node in made.model.graph]
    assert len(set(names)) == len(names)
    assert all(names)
